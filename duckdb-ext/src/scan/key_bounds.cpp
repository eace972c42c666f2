#include "scan/key_bounds.hpp"

#include "duckdb/planner/filter/conjunction_filter.hpp"
#include "duckdb/planner/filter/constant_filter.hpp"
#include "duckdb/planner/filter/in_filter.hpp"
#include "duckdb/planner/filter/optional_filter.hpp"

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

	bool IsPoint() const {
		return !lower.IsOpen() && !upper.IsOpen() && !lower.exclusive && !upper.exclusive && lower.value == upper.value;
	}
	void RaiseLower(const ColumnBound &bound);
	void CutUpper(const ColumnBound &bound);
	void Intersect(const ColumnRange &other);
	void Unite(const ColumnRange &other);
};

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
	RaiseLower(other.lower);
	CutUpper(other.upper);
}

void ColumnRange::Unite(const ColumnRange &other) {
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
		result.lower.value = filter.constant;
		result.upper.value = filter.constant;
		break;
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

//! The smallest range around those of all elements.
template <class T, class RANGE_OF>
ColumnRange RangeAround(const vector<T> &elements, RANGE_OF range_of) {
	ColumnRange result;
	for (idx_t i = 0; i < elements.size(); i++) {
		if (i == 0) {
			result = range_of(elements[i]);
		} else {
			result.Unite(range_of(elements[i]));
		}
	}
	return result;
}

//! The whole range for filters that say nothing of it.
ColumnRange RangeOf(const TableFilter &filter, const LogicalType &type) {
	ColumnRange result;
	switch (filter.filter_type) {
	case TableFilterType::CONSTANT_COMPARISON:
		return RangeOfComparison(filter.Cast<ConstantFilter>(), type);
	case TableFilterType::IN_FILTER:
		return RangeAround(filter.Cast<InFilter>().values, [&](const Value &value) {
			return RangeOfComparison(ConstantFilter(ExpressionType::COMPARE_EQUAL, value), type);
		});
	case TableFilterType::CONJUNCTION_OR:
		return RangeAround(filter.Cast<ConjunctionOrFilter>().child_filters,
						   [&](const unique_ptr<TableFilter> &child) { return RangeOf(*child, type); });
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

KeyBounds KeyBounds::FromFilters(const MeruTable &table, const TableFilterSet &filters) {
	KeyBounds result;
	for (auto column : table.key) {
		auto &type = table.columns[column].type;
		auto entry = filters.filters.find(column);
		if (entry == filters.filters.end() || !OrderedAsKey(type)) {
			break;
		}
		auto range = RangeOf(*entry->second, type);
		if (!range.lower.IsOpen()) {
			result.lower.push_back(range.lower.value);
			result.lower_exclusive = range.lower.exclusive;
		}
		if (!range.upper.IsOpen()) {
			result.upper.push_back(range.upper.value);
			result.upper_exclusive = range.upper.exclusive;
		}
		if (!range.IsPoint()) {
			break; // the next column is in order only among rows that agree in this one
		}
	}
	return result;
}

} // namespace duckdb
