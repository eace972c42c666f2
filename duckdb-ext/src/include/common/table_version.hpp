//! An older state of a table, as AT (VERSION => …) and AT (TIMESTAMP => …) name one.

#pragma once

#include "common/snapshot.hpp"
#include "duckdb/common/types/value.hpp"

namespace duckdb {

class MeruTableVersion {
  public:
	//! unit is VERSION or TIMESTAMP, in any case. Throws a BinderException that begins with what where the value is
	//! none.
	MeruTableVersion(ClientContext &context, const string &what, const string &unit, const Value &value);

	//! What the table held then. Throws where that version is gone or still to come.
	shared_ptr<MeruSnapshotRef> Acquire(shared_ptr<MeruDatabase> database) const;
	//! The same for the same unit and value.
	string Key() const;

  private:
	bool is_timestamp;
	//! A version, or microseconds since 1970-01-01 UTC.
	int64_t value;
};

} // namespace duckdb
