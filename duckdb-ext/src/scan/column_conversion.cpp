#include "scan/column_conversion.hpp"

#include "common/file_form.hpp"
#include "duckdb/planner/expression/bound_cast_expression.hpp"
#include "duckdb/planner/expression/bound_reference_expression.hpp"
#include "duckdb/planner/filter/conjunction_filter.hpp"

namespace duckdb {

namespace {

//! Whether the reader has a column's values in the table's type. A column that it does not have is a constant.
bool SameType(const BaseFileReader &reader, const MultiFileColumnDefinition &global) {
	for (auto &local : reader.columns) {
		if (!local.identifier.IsNull() && local.GetIdentifierFieldId() == global.GetIdentifierFieldId()) {
			return local.type == global.type;
		}
	}
	return true;
}

//! Two filters on one column, which was asked for under two numbers.
void AddFilter(map<idx_t, unique_ptr<TableFilter>> &filters, idx_t place, unique_ptr<TableFilter> filter) {
	auto &entry = filters[place];
	if (!entry) {
		entry = std::move(filter);
		return;
	}
	auto both = make_uniq<ConjunctionAndFilter>();
	both->child_filters.push_back(std::move(entry));
	both->child_filters.push_back(std::move(filter));
	entry = std::move(both);
}

bool ReplaceCast(unique_ptr<Expression> &expression) {
	if (expression->GetExpressionClass() != ExpressionClass::BOUND_CAST) {
		return false;
	}
	auto &cast = expression->Cast<BoundCastExpression>();
	if (HasFileForm(cast.return_type) && cast.child->return_type.id() == LogicalTypeId::BLOB) {
		auto type = cast.return_type;
		expression = MakeFileFormDecoder(std::move(cast.child), type);
	}
	return true;
}

} // namespace

ColumnConversion::ColumnConversion(BaseFileReader &reader, const vector<MultiFileColumnDefinition> &global_columns,
								   const vector<ColumnIndex> &columns, optional_ptr<TableFilterSet> filters,
								   const vector<idx_t> &filter_places)
	: reader(reader) {
	if (!filters) {
		return;
	}
	for (auto &entry : filters->filters) {
		auto place = filter_places[entry.first];
		auto id = columns[place].GetPrimaryIndex();
		auto is_direct = IsVirtualColumn(id) || SameType(reader, global_columns[id]);
		AddFilter(is_direct ? direct.filters : converted, place, entry.second->Copy());
	}
}

optional_ptr<TableFilterSet> ColumnConversion::DirectFilters() {
	return direct.filters.empty() ? nullptr : optional_ptr<TableFilterSet>(&direct);
}

void ColumnConversion::Apply(MultiFileReaderData &reader_data) {
	for (auto &expression : reader_data.expressions) {
		ReplaceCast(expression);
	}
	for (auto &entry : converted) {
		auto &expression = reader_data.expressions[entry.first];
		// A conversion of one column, the reader's: in the reader it is evaluated on a chunk of that column alone.
		optional_idx local;
		ExpressionIterator::VisitExpressionMutable<BoundReferenceExpression>(
			expression, [&](BoundReferenceExpression &reference, unique_ptr<Expression> &) {
				local = reference.index;
				reference.index = 0;
			});
		if (!local.IsValid()) {
			throw NotImplementedException("A filter on a column that file \"%s\" does not have", reader.GetFileName());
		}
		auto type = expression->return_type;
		auto column = reader.column_indexes[local.GetIndex()].GetPrimaryIndex();
		reader.expression_map[column] = std::move(expression);
		expression = make_uniq<BoundReferenceExpression>(type, local.GetIndex());
		if (!reader.filters) {
			reader.filters = make_uniq<TableFilterSet>();
		}
		reader.filters->filters.emplace(local.GetIndex(), std::move(entry.second));
	}
}

} // namespace duckdb
