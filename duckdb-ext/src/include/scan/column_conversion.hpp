//! Columns whose values a reader has in another type than the table.

#pragma once

#include "common/stored_form.hpp"
#include "common/table_schema.hpp"
#include "duckdb/common/multi_file/multi_file_reader.hpp"
#include "duckdb/planner/table_filter.hpp"

namespace duckdb {

//! DuckDB maps a reader's columns to the table's with casts, and translates pushed filters into the reader's types.
//! Both go wrong for us: there is no cast from a HUGEINT's file form, and filters of some kinds (a join's bloom filter,
//! an order that an ENUM's labels do not have) have no translation. So filters on such columns are kept from DuckDB's
//! mapping, and applied to the values that the conversion yields.
class ColumnConversion {
  public:
	//! A column as DuckDB's mapping takes it, by field id, with the type that someone has it in. Where all of a nested
	//! column is the same in memory, in files and for the user, its fields are told too, so that DuckDB reads no more
	//! of it than a query asks for; any other one is mapped as a whole.
	static MultiFileColumnDefinition Define(const MeruColumn &column, const LogicalType &type);

	//! filters: by place in columns. columns: those of the scan, by number in global_columns.
	ColumnConversion(BaseFileReader &reader, const vector<MultiFileColumnDefinition> &global_columns,
					 const vector<ColumnIndex> &columns, optional_ptr<TableFilterSet> filters,
					 const vector<idx_t> &filter_places);

	//! The filters that DuckDB may translate.
	optional_ptr<TableFilterSet> DirectFilters();
	//! To be called after DuckDB's mapping: replaces casts by conversions that work, and adds the other filters.
	void Apply(MultiFileReaderData &reader_data);

  private:
	BaseFileReader &reader;
	TableFilterSet direct;
	map<idx_t, unique_ptr<TableFilter>> converted;
};

} // namespace duckdb
