//! INSERT where rows of keys that are there already are left out.

#pragma once

#include "dml/key_lookup.hpp"
#include "dml/key_set.hpp"
#include "duckdb/common/types/column/column_data_collection.hpp"

namespace duckdb {

//! Lets the rows through whose keys a table does not have, of several with one key the first one. For one thread at a
//! time.
class NewRowFilter {
  public:
	NewRowFilter(ClientContext &context, const MeruTable &table, shared_ptr<MeruSnapshotRef> snapshot);

	using take_t = std::function<void(DataChunk &rows)>;
	//! Adds rows, with all columns of the table. take is called with what is let through, at some time.
	void Add(DataChunk &rows, const take_t &take);
	//! Lets the last ones through.
	void Flush(const take_t &take);

  private:
	//! So many rows wait for their keys to be looked up together, or so many bytes.
	static constexpr idx_t WAITING_ROWS = 65536;
	static constexpr idx_t WAITING_BYTES = idx_t(64) << 20;

	const MeruTable &table;
	KeySet seen;
	KeyLookup lookup;
	ColumnDataCollection waiting;
	DataChunk keys;
	DataChunk first_rows;
};

} // namespace duckdb
