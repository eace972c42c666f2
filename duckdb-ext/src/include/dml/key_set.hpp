//! The keys that a statement has come across.

#pragma once

#include "duckdb/common/types/data_chunk.hpp"
#include "duckdb/execution/aggregate_hashtable.hpp"

namespace duckdb {
class LogicalOperator;

//! For one thread at a time. Keys are equal where DuckDB holds their values for equal.
class KeySet {
  public:
	KeySet(ClientContext &context, const vector<LogicalType> &types);

	//! Adds the keys of a chunk. new_keys receives the places of those that were not in it, the first of equal ones
	//! only.
	idx_t Add(DataChunk &keys, SelectionVector &new_keys);

  private:
	GroupedAggregateHashTable table;
	Vector addresses;
};

//! Whether a plan may yield a row of its table more than once, as joins do.
bool CanRepeatRows(const LogicalOperator &op);

} // namespace duckdb
