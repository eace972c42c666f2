//! Keys that must be new in their table.

#pragma once

#include "dml/key_lookup.hpp"
#include "dml/key_set.hpp"
#include "duckdb/common/types/column/column_data_collection.hpp"

namespace duckdb {

//! Throws the error of a key that is there already. keys: the key's columns in key order.
[[noreturn]] void ThrowDuplicateKey(const MeruTable &table, DataChunk &keys, idx_t row);

//! Refuses keys that a statement brings twice, and those that the table has already. For any number of
//! threads.
class NewKeys {
  public:
	//! snapshot: the state before the statement.
	NewKeys(ClientContext &context, const MeruTable &table, shared_ptr<MeruSnapshotRef> snapshot);

	//! Adds the keys of rows, which have all columns of the table. What is wrong with them is told now, or later.
	void Add(DataChunk &rows);
	//! What Add() has not told yet.
	void Finish();

	//! Keys whose rows the statement removes, if any: to them, others may come.
	optional_ptr<KeySet> removed;

  private:
	//! So many keys are looked up at a time: many, because those that are near each other share most of the work.
	static constexpr idx_t LOOKUP_KEYS = 65536;

	void CheckAsked();

	const MeruTable &table;
	mutex lock;
	KeySet seen;
	KeyLookup lookup;
	//! What the look-up was asked for.
	ColumnDataCollection asked;
	DataChunk keys;
};

} // namespace duckdb
