//! The columns that identify a row for DELETE and UPDATE: the key columns under other numbers.
//!
//! DuckDB asks for a row's identity as virtual columns, which have numbers of their own. A scan can be asked for a
//! column both as itself and as a part of the identity, but DuckDB's Parquet reader must be asked for it once.

#pragma once

#include "duckdb/common/column_index.hpp"
#include "duckdb/common/table_column.hpp"
#include "common/table_schema.hpp"

namespace duckdb {

struct KeyColumns {
	//! The number under which part key_position of the key is asked for.
	static column_t Id(idx_t key_position);
	static bool IsKeyColumn(column_t column);
	//! Its place in the key.
	static idx_t KeyPosition(column_t column);
	static vector<column_t> Ids(const MeruTable &table);
	static void AddTo(const MeruTable &table, virtual_column_map_t &columns);
};

//! The columns of a scan with each asked for once.
struct DistinctColumns {
	DistinctColumns(const MeruTable &table, const vector<ColumnIndex> &asked);

	vector<ColumnIndex> columns;
	//! For each column asked for, its place in columns.
	vector<idx_t> place;
};

} // namespace duckdb
