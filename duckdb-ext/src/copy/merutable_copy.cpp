#include "copy/merutable_copy.hpp"

#include "copy/physical_copy.hpp"
#include "duckdb/execution/column_binding_resolver.hpp"
#include "duckdb/execution/physical_plan_generator.hpp"
#include "duckdb/function/copy_function.hpp"
#include "duckdb/main/extension/extension_loader.hpp"
#include "duckdb/main/query_result.hpp"
#include "duckdb/parser/query_node.hpp"
#include "duckdb/parser/statement/copy_statement.hpp"
#include "duckdb/planner/binder.hpp"
#include "duckdb/planner/expression/bound_columnref_expression.hpp"
#include "duckdb/planner/expression/bound_reference_expression.hpp"
#include "duckdb/planner/operator/logical_extension_operator.hpp"

namespace duckdb {

namespace {

//! The whole of COPY TO. DuckDB's own operator is for files: it would write a temporary file where the target exists,
//! and make a directory of it.
class LogicalMerutableCopy : public LogicalExtensionOperator {
  public:
	explicit LogicalMerutableCopy(CopyTarget target) : target(std::move(target)) {
	}

	CopyTarget target;

	PhysicalOperator &CreatePlan(ClientContext &context, PhysicalPlanGenerator &planner) override {
		auto &child = planner.CreatePlan(*children[0]);
		vector<idx_t> places;
		for (auto &expression : expressions) {
			places.push_back(expression->Cast<BoundReferenceExpression>().index);
		}
		auto &result = planner.Make<MerutablePhysicalCopy>(context, target, std::move(places), estimated_cardinality);
		auto &copy = result.Cast<MerutablePhysicalCopy>();
		copy.keep_order = PhysicalPlanGenerator::PreserveInsertionOrder(context, child);
		copy.use_batches = copy.keep_order && PhysicalPlanGenerator::UseBatchIndex(context, child);
		copy.children.push_back(child);
		return copy;
	}
	string GetName() const override {
		return "MERUTABLE_COPY";
	}
	string GetExtensionName() const override {
		return "merutable";
	}
	vector<ColumnBinding> GetColumnBindings() override {
		return {ColumnBinding(0, 0)};
	}
	bool SupportSerialization() const override {
		return false;
	}

  protected:
	void ResolveTypes() override {
		types = {LogicalType::BIGINT};
	}
};

BoundStatement PlanCopy(Binder &binder, CopyStatement &stmt) {
	auto &info = *stmt.info;
	auto node = info.select_statement->Copy();
	auto query = binder.Bind(*node);
	auto names = query.names;
	QueryResult::DeduplicateColumns(names);
	auto target = CopyTarget::Bind(binder.context, info.file_path, info.options, names, query.types);

	auto copy = make_uniq<LogicalMerutableCopy>(std::move(target));
	query.plan->ResolveOperatorTypes();
	auto bindings = query.plan->GetColumnBindings();
	// Without a reference to them, the optimizer would drop the columns.
	for (idx_t i = 0; i < bindings.size(); i++) {
		copy->expressions.push_back(make_uniq<BoundColumnRefExpression>(query.types[i], bindings[i]));
	}
	copy->children.push_back(std::move(query.plan));

	BoundStatement result;
	result.names = {"Count"};
	result.types = {LogicalType::BIGINT};
	result.plan = std::move(copy);
	return result;
}

} // namespace

void MerutableCopy::Register(ExtensionLoader &loader) {
	CopyFunction function("merutable");
	function.plan = PlanCopy;
	function.extension = "merutable";
	loader.RegisterFunction(function);
}

} // namespace duckdb
