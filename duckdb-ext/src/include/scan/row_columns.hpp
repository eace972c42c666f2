//! The virtual columns of rows: rowid and _merutable_seq.

#pragma once

#include "duckdb/common/constants.hpp"
#include "duckdb/common/table_column.hpp"
#include "duckdb/planner/expression.hpp"

namespace duckdb {

struct RowColumns {
	//! When the row was written; NULL for rows that the transaction at hand has written. rowid, which is
	//! COLUMN_IDENTIFIER_ROW_ID, is the number of the row's file and its number in that.
	static constexpr column_t SEQ = (column_t(1) << 63) + 900000;
	static constexpr const char *SEQ_NAME = "_merutable_seq";
	//! The column's field id in data files (docs/FORMAT.md).
	static constexpr int32_t SEQ_FIELD_ID = 2147483400;

	static bool IsRowColumn(column_t column) {
		return column == COLUMN_IDENTIFIER_ROW_ID || column == SEQ;
	}
	static void AddTo(virtual_column_map_t &columns);
	//! The ids of rows of a file, from their numbers in it. place: the file's number in the snapshot.
	static unique_ptr<Expression> RowIds(idx_t place, unique_ptr<Expression> row_number);
};

} // namespace duckdb
