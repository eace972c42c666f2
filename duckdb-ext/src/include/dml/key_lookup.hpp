//! Whether keys are in a snapshot.

#pragma once

#include "common/arrow_rows.hpp"
#include "common/snapshot.hpp"

namespace duckdb {

//! Looks keys up many at a time. For one thread at a time.
class KeyLookup {
  public:
	KeyLookup(ClientContext &context, shared_ptr<MeruSnapshotRef> snapshot);

	//! keys: the key's columns in key order. Throws a ConstraintException for a NULL in one.
	void Add(DataChunk &keys);
	//! For each key that was added since the last call, in that order: whether it has a row.
	vector<uint8_t> Finish();

  private:
	void Look(ArrowArray &keys, const ArrowSchema &schema);

	shared_ptr<MeruSnapshotRef> snapshot;
	ArrowRowBuffer buffer;
	vector<uint8_t> found;
};

} // namespace duckdb
