//! One key, or one row, as an Arrow array.

#pragma once

#include "common/snapshot.hpp"
#include "duckdb/common/types/data_chunk.hpp"

namespace duckdb {

//! Looks up a key given as a chunk of one row, in key order. Fills output, which has the table's types, with the row.
//! Returns false where there is none.
bool LookupKey(ClientContext &context, const MeruSnapshotRef &snapshot, DataChunk &key, DataChunk &output);

} // namespace duckdb
