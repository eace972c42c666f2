//! Whether keys are in a snapshot.

#pragma once

#include "common/arrow_rows.hpp"
#include "common/snapshot.hpp"

namespace duckdb {

//! For one thread at a time.
class KeyLookup {
  public:
	KeyLookup(ClientContext &context, shared_ptr<MeruSnapshotRef> snapshot);

	//! keys: the key's columns in key order.
	bool Contains(DataChunk &keys, idx_t row);

  private:
	shared_ptr<MeruSnapshotRef> snapshot;
	ArrowRowBuffer buffer;
	DataChunk one;
};

} // namespace duckdb
