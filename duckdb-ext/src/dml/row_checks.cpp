#include "dml/row_checks.hpp"

#include "duckdb/common/vector_operations/vector_operations.hpp"
#include "duckdb/execution/expression_executor.hpp"
#include "duckdb/parser/column_list.hpp"
#include "duckdb/parser/constraints/check_constraint.hpp"
#include "duckdb/parser/parser.hpp"
#include "duckdb/planner/binder.hpp"
#include "duckdb/planner/constraints/bound_check_constraint.hpp"

namespace duckdb {

RowChecks::RowChecks(ClientContext &context, const MeruTable &table) : table_name(table.name) {
	if (table.checks.empty()) {
		return;
	}
	ColumnList columns;
	for (auto &column : table.columns) {
		columns.AddColumn(ColumnDefinition(column.name, column.type));
	}
	vector<unique_ptr<Constraint>> constraints;
	for (auto &text : table.checks) {
		auto expressions = Parser::ParseExpressionList(text);
		if (expressions.size() != 1) {
			throw InvalidInputException("A CHECK constraint of table \"%s\" is no expression: %s", table_name, text);
		}
		constraints.push_back(make_uniq<CheckConstraint>(std::move(expressions[0])));
	}
	auto bound = Binder::BindConstraints(context, constraints, table_name, columns);
	for (idx_t i = 0; i < bound.size(); i++) {
		auto &condition = bound[i]->Cast<BoundCheckConstraint>().expression;
		checks.push_back({std::move(condition), constraints[i]->ToString()});
	}
	for (idx_t i = 0; i < table.columns.size(); i++) {
		if (!table.columns[i].nullable || table.IsKey(i)) {
			not_null.emplace_back(i, table.columns[i].name);
		}
	}
}

void RowChecks::Verify(ClientContext &context, DataChunk &rows) const {
	for (auto &column : not_null) {
		if (VectorOperations::HasNull(rows.data[column.first], rows.size())) {
			throw ConstraintException("NOT NULL constraint failed: %s.%s", table_name, column.second);
		}
	}
	for (auto &check : checks) {
		ExpressionExecutor executor(context, *check.condition);
		Vector result(LogicalType::INTEGER);
		try {
			executor.ExecuteExpression(rows, result);
		} catch (std::exception &error) {
			throw ConstraintException("CHECK constraint failed on table %s with expression %s (Error: %s)", table_name,
									  check.text, ErrorData(error).RawMessage());
		}
		UnifiedVectorFormat format;
		result.ToUnifiedFormat(rows.size(), format);
		auto values = UnifiedVectorFormat::GetData<int32_t>(format);
		for (idx_t i = 0; i < rows.size(); i++) {
			auto place = format.sel->get_index(i);
			if (format.validity.RowIsValid(place) && values[place] == 0) {
				throw ConstraintException("CHECK constraint failed on table %s with expression %s", table_name,
										  check.text);
			}
		}
	}
}

} // namespace duckdb
