#include "scan/column_conversion.hpp"

#include "duckdb/planner/expression/bound_cast_expression.hpp"
#include "duckdb/planner/expression/bound_reference_expression.hpp"
#include "duckdb/planner/filter/conjunction_filter.hpp"
#include "scan/row_columns.hpp"

namespace duckdb {

namespace {

//! Whether DuckDB's mapping is told of the fields of a nested column. It takes a MAP for different from itself, and has
//! no mapping of an ARRAY.
bool HasKnownFields(const LogicalType &type) {
	switch (type.id()) {
	case LogicalTypeId::STRUCT:
		for (auto &field : StructType::GetChildTypes(type)) {
			if (!HasKnownFields(field.second)) {
				return false;
			}
		}
		return true;
	case LogicalTypeId::LIST:
		return HasKnownFields(ListType::GetChildType(type));
	case LogicalTypeId::MAP:
	case LogicalTypeId::ARRAY:
		return false;
	default:
		return StoredForm::ParquetType(type) == type && StoredForm::ArrowType(type) == type;
	}
}

vector<MultiFileColumnDefinition> DefineFields(const vector<MeruField> &fields) {
	vector<MultiFileColumnDefinition> result;
	for (auto &field : fields) {
		MultiFileColumnDefinition definition(field.name, field.type);
		definition.identifier = Value::INTEGER(field.field_id);
		definition.children = DefineFields(field.fields);
		result.push_back(std::move(definition));
	}
	return result;
}

//! Whether the reader has a column's values in the table's type. A column that it does not have is a constant.
bool SameType(const BaseFileReader &reader, const MultiFileColumnDefinition &global) {
	for (auto &local : reader.columns) {
		if (!local.identifier.IsNull() && local.GetIdentifierFieldId() == global.GetIdentifierFieldId()) {
			auto is_opaque = global.type.IsNested() && global.children.empty();
			return !is_opaque && local.type == global.type;
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

void ReplaceCast(unique_ptr<Expression> &expression) {
	if (expression->GetExpressionClass() != ExpressionClass::BOUND_CAST) {
		return;
	}
	auto &cast = expression->Cast<BoundCastExpression>();
	if (StoredForm::NeedsDecoder(cast.child->return_type, cast.return_type)) {
		auto type = cast.return_type;
		expression = StoredForm::MakeDecoder(std::move(cast.child), type);
	}
}

} // namespace

MultiFileColumnDefinition ColumnConversion::Define(const MeruColumn &column, const LogicalType &type) {
	MultiFileColumnDefinition result(column.name, type);
	result.identifier = Value::INTEGER(column.field_id);
	if (column.type.IsNested() && HasKnownFields(column.type)) {
		result.children = DefineFields(column.fields);
	}
	return result;
}

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
		if (RowColumns::IsRowColumn(id)) {
			continue; // one of a join, which applies it itself
		}
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
