#include "scan/key_bounds.hpp"

#include "duckdb/planner/filter/conjunction_filter.hpp"
#include "duckdb/planner/filter/constant_filter.hpp"
#include "duckdb/planner/filter/dynamic_filter.hpp"
#include "duckdb/planner/filter/in_filter.hpp"
#include "duckdb/planner/filter/optional_filter.hpp"

#include <algorithm>

namespace duckdb {

namespace {

//! One end of a column's range. Without a value it is open.
struct ColumnBound {
	Value value;
	bool exclusive = false;

	bool IsOpen() const {
		return value.IsNull();
	}
};

//! The values of one column that can pass.
struct ColumnRange {
	ColumnBound lower;
	ColumnBound upper;
	//! Whether only these can, which lie in the range: ascending, each once.
	bool is_values = false;
	vector<Value> values;

	static ColumnRange Of(vector<Value> values);
	bool Holds(const Value &value) const;
	void RaiseLower(const ColumnBound &bound);
	void CutUpper(const ColumnBound &bound);
	void Intersect(const ColumnRange &other);
	void Unite(const ColumnRange &other);
};

ColumnRange ColumnRange::Of(vector<Value> values) {
	ColumnRange result;
	std::sort(values.begin(), values.end());
	values.erase(std::unique(values.begin(), values.end()), values.end());
	result.is_values = true;
	if (!values.empty()) {
		result.lower.value = values.front();
		result.upper.value = values.back();
	}
	result.values = std::move(values);
	return result;
}

bool ColumnRange::Holds(const Value &value) const {
	if (!lower.IsOpen() && (value < lower.value || (value == lower.value && lower.exclusive))) {
		return false;
	}
	if (!upper.IsOpen() && (value > upper.value || (value == upper.value && upper.exclusive))) {
		return false;
	}
	return !is_values || std::binary_search(values.begin(), values.end(), value);
}

void ColumnRange::RaiseLower(const ColumnBound &bound) {
	if (bound.IsOpen()) {
		return;
	}
	if (lower.IsOpen() || bound.value > lower.value || (bound.value == lower.value && bound.exclusive)) {
		lower = bound;
	}
}

void ColumnRange::CutUpper(const ColumnBound &bound) {
	if (bound.IsOpen()) {
		return;
	}
	if (upper.IsOpen() || bound.value < upper.value || (bound.value == upper.value && bound.exclusive)) {
		upper = bound;
	}
}

void ColumnRange::Intersect(const ColumnRange &other) {
	if (!is_values && !other.is_values) {
		RaiseLower(other.lower);
		CutUpper(other.upper);
		return;
	}
	auto &fewer = is_values ? *this : other;
	auto &check = is_values ? other : *this;
	vector<Value> kept;
	for (auto &value : fewer.values) {
		if (check.Holds(value)) {
			kept.push_back(value);
		}
	}
	*this = Of(std::move(kept));
}

void ColumnRange::Unite(const ColumnRange &other) {
	if (is_values && other.is_values) {
		auto all = std::move(values);
		all.insert(all.end(), other.values.begin(), other.values.end());
		*this = Of(std::move(all));
		return;
	}
	if (other.is_values && other.values.empty()) {
		return;
	}
	if (is_values && values.empty()) {
		*this = other;
		return;
	}
	is_values = false;
	values.clear();
	if (other.lower.IsOpen() || lower.IsOpen()) {
		lower = ColumnBound();
	} else if (other.lower.value < lower.value || (other.lower.value == lower.value && lower.exclusive)) {
		lower = other.lower;
	}
	if (other.upper.IsOpen() || upper.IsOpen()) {
		upper = ColumnBound();
	} else if (other.upper.value > upper.value || (other.upper.value == upper.value && upper.exclusive)) {
		upper = other.upper;
	}
}

ColumnRange RangeOf(const TableFilter &filter, const LogicalType &type);

ColumnRange RangeOfComparison(const ConstantFilter &filter, const LogicalType &type) {
	ColumnRange result;
	if (filter.constant.IsNull() || filter.constant.type() != type) {
		return result;
	}
	switch (filter.comparison_type) {
	case ExpressionType::COMPARE_EQUAL:
		return ColumnRange::Of({filter.constant});
	case ExpressionType::COMPARE_GREATERTHAN:
	case ExpressionType::COMPARE_GREATERTHANOREQUALTO:
		result.lower.value = filter.constant;
		result.lower.exclusive = filter.comparison_type == ExpressionType::COMPARE_GREATERTHAN;
		break;
	case ExpressionType::COMPARE_LESSTHAN:
	case ExpressionType::COMPARE_LESSTHANOREQUALTO:
		result.upper.value = filter.constant;
		result.upper.exclusive = filter.comparison_type == ExpressionType::COMPARE_LESSTHAN;
		break;
	default:
		break;
	}
	return result;
}

ColumnRange RangeOfValues(const vector<Value> &values, const LogicalType &type) {
	vector<Value> usable;
	for (auto &value : values) {
		if (value.IsNull()) {
			continue; // equal to nothing
		}
		if (value.type() != type) {
			return ColumnRange();
		}
		usable.push_back(value);
	}
	return ColumnRange::Of(std::move(usable));
}

//! A top-N's filter, which has the value of its heap's last row, once the heap is full.
ColumnRange RangeOfDynamic(const DynamicFilter &filter, const LogicalType &type) {
	if (!filter.filter_data) {
		return ColumnRange();
	}
	lock_guard<mutex> guard(filter.filter_data->lock);
	if (!filter.filter_data->initialized || !filter.filter_data->filter) {
		return ColumnRange();
	}
	return RangeOfComparison(*filter.filter_data->filter, type);
}

//! The whole range for filters that say nothing of it.
ColumnRange RangeOf(const TableFilter &filter, const LogicalType &type) {
	ColumnRange result;
	switch (filter.filter_type) {
	case TableFilterType::CONSTANT_COMPARISON:
		return RangeOfComparison(filter.Cast<ConstantFilter>(), type);
	case TableFilterType::IS_NULL:
		return ColumnRange::Of({}); // no part of a key is NULL
	case TableFilterType::IN_FILTER:
		return RangeOfValues(filter.Cast<InFilter>().values, type);
	case TableFilterType::DYNAMIC_FILTER:
		return RangeOfDynamic(filter.Cast<DynamicFilter>(), type);
	case TableFilterType::CONJUNCTION_OR:
		result = ColumnRange::Of({});
		for (auto &child : filter.Cast<ConjunctionOrFilter>().child_filters) {
			result.Unite(RangeOf(*child, type));
		}
		return result;
	case TableFilterType::CONJUNCTION_AND:
		for (auto &child : filter.Cast<ConjunctionAndFilter>().child_filters) {
			result.Intersect(RangeOf(*child, type));
		}
		return result;
	case TableFilterType::OPTIONAL_FILTER:
		// What it leaves out, other filters would.
		if (filter.Cast<OptionalFilter>().child_filter) {
			return RangeOf(*filter.Cast<OptionalFilter>().child_filter, type);
		}
		return result;
	default:
		return result;
	}
}

//! DuckDB compares some intervals otherwise than by their length, which is what keys are ordered by.
bool OrderedAsKey(const LogicalType &type) {
	return type.id() != LogicalTypeId::INTERVAL;
}

} // namespace

KeyBounds KeyBounds::FromFilters(const MeruTable &table, const filter_of_t &filter_of) {
	vector<ColumnRange> ranges;
	KeyBounds result;
	for (auto column : table.key) {
		auto &type = table.columns[column].type;
		auto filter = filter_of(column);
		ranges.push_back(filter && OrderedAsKey(type) ? RangeOf(*filter, type) : ColumnRange());
		if (ranges.back().is_values && ranges.back().values.empty()) {
			result.is_prefixes = true; // nothing passes
			return result;
		}
	}
	// The next column is in order only among rows that agree in those before it.
	result.prefixes.emplace_back();
	for (auto &range : ranges) {
		if (range.is_values && result.prefixes.size() * range.values.size() <= MAX_PREFIXES) {
			vector<vector<Value>> longer;
			for (auto &prefix : result.prefixes) {
				for (auto &value : range.values) {
					longer.push_back(prefix);
					longer.back().push_back(value);
				}
			}
			result.prefixes = std::move(longer);
			continue;
		}
		if (result.prefixes.size() > 1) {
			break;
		}
		result.lower = result.prefixes[0];
		result.upper = result.prefixes[0];
		if (!range.lower.IsOpen()) {
			result.lower.push_back(range.lower.value);
			result.lower_exclusive = range.lower.exclusive;
		}
		if (!range.upper.IsOpen()) {
			result.upper.push_back(range.upper.value);
			result.upper_exclusive = range.upper.exclusive;
		}
		result.prefixes.clear();
		return result;
	}
	if (result.prefixes.size() == 1) {
		result.lower = result.prefixes[0];
		result.upper = result.prefixes[0];
		result.prefixes.clear();
		return result;
	}
	result.is_prefixes = true;
	return result;
}

bool KeyBounds::IsDynamic(const TableFilter &filter) {
	switch (filter.filter_type) {
	case TableFilterType::DYNAMIC_FILTER:
		return true;
	case TableFilterType::OPTIONAL_FILTER: {
		auto &child = filter.Cast<OptionalFilter>().child_filter;
		return child && IsDynamic(*child);
	}
	case TableFilterType::CONJUNCTION_AND:
		for (auto &child : filter.Cast<ConjunctionAndFilter>().child_filters) {
			if (IsDynamic(*child)) {
				return true;
			}
		}
		return false;
	default:
		return false;
	}
}

bool KeyBounds::operator==(const KeyBounds &other) const {
	return lower == other.lower && upper == other.upper && lower_exclusive == other.lower_exclusive &&
		   upper_exclusive == other.upper_exclusive && is_prefixes == other.is_prefixes && prefixes == other.prefixes;
}

} // namespace duckdb
