//! What the filters of a scan say of the key.

#pragma once

#include "common/table_schema.hpp"
#include "duckdb/common/types/value.hpp"
#include "duckdb/planner/table_filter.hpp"

namespace duckdb {

//! A range of keys outside of which no row passes the filters. Both ends are prefixes of the key's columns; an end
//! without values is open.
struct KeyBounds {
	vector<Value> lower;
	vector<Value> upper;
	bool lower_exclusive = false;
	bool upper_exclusive = false;

	//! filters: by column of the table.
	static KeyBounds FromFilters(const MeruTable &table, const TableFilterSet &filters);

	bool IsOpen() const {
		return lower.empty() && upper.empty();
	}
};

} // namespace duckdb
