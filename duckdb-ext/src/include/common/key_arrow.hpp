//! Rows by their keys.

#pragma once

#include "common/arrow_batches.hpp"
#include "common/arrow_rows.hpp"
#include "common/snapshot.hpp"
#include "duckdb/common/types/data_chunk.hpp"

namespace duckdb {

//! Looks up a key given as a chunk of one row, in key order. Fills output, which has the table's types, with the row.
//! Returns false where there is none.
bool LookupKey(ClientContext &context, const MeruSnapshotRef &snapshot, DataChunk &key, DataChunk &output);

//! Finds whole rows by their keys. For one thread at a time.
class RowLookup {
  public:
	RowLookup(ClientContext &context, shared_ptr<MeruSnapshotRef> snapshot);

	//! The rows that there are, in the order of the keys; valid until the next call. keys: the key's columns in key
	//! order.
	DataChunk &Find(DataChunk &keys);

  private:
	ClientContext &context;
	shared_ptr<MeruSnapshotRef> snapshot;
	ArrowRowBuffer buffer;
	unique_ptr<ArrowColumns> columns;
	DataChunk raw;
	DataChunk decoded;
	DataChunk rows;
};

//! What rows have in each column that are older than it; NULLs of the columns' types where that is nothing.
vector<Value> InitialDefaults(ClientContext &context, const MeruSnapshotRef &snapshot);

} // namespace duckdb
