#include "scan/row_columns.hpp"

#include "duckdb/common/vector_operations/binary_executor.hpp"
#include "duckdb/function/scalar_function.hpp"
#include "duckdb/planner/expression/bound_constant_expression.hpp"
#include "duckdb/planner/expression/bound_function_expression.hpp"

namespace duckdb {

constexpr column_t RowColumns::SEQ;

namespace {

//! A file has at most 2^32 rows. Rows in memory are numbered by the engine, below 2^40.
constexpr int64_t ROWS_OF_FILE = int64_t(1) << 40;

void AddBase(DataChunk &arguments, ExpressionState &, Vector &result) {
	BinaryExecutor::Execute<int64_t, int64_t, int64_t>(arguments.data[0], arguments.data[1], result, arguments.size(),
													   [](int64_t base, int64_t row) { return base + row; });
}

} // namespace

void RowColumns::AddTo(virtual_column_map_t &columns) {
	columns.insert(make_pair(COLUMN_IDENTIFIER_ROW_ID, TableColumn("rowid", LogicalType::BIGINT)));
	columns.insert(make_pair(SEQ, TableColumn(SEQ_NAME, LogicalType::BIGINT)));
}

unique_ptr<Expression> RowColumns::RowIds(idx_t place, unique_ptr<Expression> row_number) {
	vector<unique_ptr<Expression>> children;
	children.push_back(make_uniq<BoundConstantExpression>(Value::BIGINT(NumericCast<int64_t>(place) * ROWS_OF_FILE)));
	children.push_back(std::move(row_number));
	ScalarFunction function("merutable_rowid", {LogicalType::BIGINT, LogicalType::BIGINT}, LogicalType::BIGINT,
							AddBase);
	return make_uniq<BoundFunctionExpression>(LogicalType::BIGINT, std::move(function), std::move(children), nullptr);
}

} // namespace duckdb
