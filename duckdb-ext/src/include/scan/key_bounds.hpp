//! What the filters of a scan say of the key.

#pragma once

#include "common/table_schema.hpp"
#include "duckdb/common/types/value.hpp"
#include "duckdb/planner/table_filter.hpp"

namespace duckdb {

//! Keys outside of which no row passes the filters: a range, or some prefixes of keys.
struct KeyBounds {
	//! A range. Both ends are prefixes of the key's columns; an end without values is open.
	vector<Value> lower;
	vector<Value> upper;
	bool lower_exclusive = false;
	bool upper_exclusive = false;
	//! Keys begin with one of these; the range is open then.
	bool is_prefixes = false;
	vector<vector<Value>> prefixes;

	//! The most prefixes that are made of filters that each allow some values.
	static constexpr idx_t MAX_PREFIXES = 4096;

	using filter_of_t = std::function<optional_ptr<const TableFilter>(idx_t column)>;
	//! filter_of: the filter on a column of the table. Top-N filters count with the value that they have at the moment.
	static KeyBounds FromFilters(const MeruTable &table, const filter_of_t &filter_of);
	//! Whether a filter holds a part that changes while the scan runs.
	static bool IsDynamic(const TableFilter &filter);

	bool IsOpen() const {
		return lower.empty() && upper.empty() && !is_prefixes;
	}
	bool operator==(const KeyBounds &other) const;
};

} // namespace duckdb
