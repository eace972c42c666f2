//! What a statement does at its end, because only then it is known which keys are free.

#pragma once

#include "dml/new_keys.hpp"

namespace duckdb {

//! Rows that go away, and rows that come, also to keys that others leave. Kept in DuckDB's memory, which spills to its
//! temporary directory, but for the keys that go. For any number of threads.
class PendingRows {
  public:
	//! snapshot: the state before the statement.
	PendingRows(ClientContext &context, const MeruTable &table, shared_ptr<MeruSnapshotRef> snapshot);

	//! The rows of keys go away. first receives the places of those of which that was not known, the first of equal
	//! ones only.
	idx_t Remove(DataChunk &keys, SelectionVector &first);
	//! Rows come, with all columns of the table. Throws a ConstraintException for a NULL in a column that takes none.
	void Put(DataChunk &rows);
	//! After all others: hands everything to the engine. Throws where two rows would have one key.
	void Finish(ClientContext &context, MeruWriteBatch &write);

  private:
	const MeruTable &table;
	shared_ptr<MeruSnapshotRef> snapshot;
	mutex lock;
	KeySet removed;
	ColumnDataCollection removed_keys;
	ColumnDataCollection rows;
};

} // namespace duckdb
