//! The part of the catalog that turns logical into physical operators.

#include "catalog/merutable_catalog.hpp"
#include "catalog/merutable_schema_entry.hpp"
#include "catalog/merutable_table_entry.hpp"
#include "catalog/table_definition.hpp"
#include "dml/merutable_create_table_as.hpp"
#include "dml/merutable_delete.hpp"
#include "dml/merutable_insert.hpp"
#include "dml/merutable_merge.hpp"
#include "dml/merutable_update.hpp"
#include "duckdb/common/exception/binder_exception.hpp"
#include "duckdb/execution/physical_plan_generator.hpp"
#include "duckdb/parser/parsed_data/alter_table_info.hpp"
#include "duckdb/parser/parsed_data/create_index_info.hpp"
#include "duckdb/parser/parsed_data/create_table_info.hpp"
#include "duckdb/parser/statement/create_statement.hpp"
#include "duckdb/planner/operator/logical_create_table.hpp"
#include "duckdb/planner/operator/logical_delete.hpp"
#include "duckdb/planner/operator/logical_insert.hpp"
#include "duckdb/planner/operator/logical_merge_into.hpp"
#include "duckdb/planner/operator/logical_update.hpp"
#include "duckdb/planner/parsed_data/bound_create_table_info.hpp"

namespace duckdb {

PhysicalOperator &MerutableCatalog::PlanCreateTableAs(ClientContext &context, PhysicalPlanGenerator &planner,
													  LogicalCreateTable &op, PhysicalOperator &plan) {
	auto &base = op.info->Base().Cast<CreateTableInfo>();
	// DuckDB plans an existing table with IF NOT EXISTS otherwise, so that there is something to create.
	schema->MayCreate(context, base.table, base.on_conflict);
	auto &result = planner.Make<MerutableCreateTableAs>(op.types, *this, TableDefinition::MakeAs(base),
														base.on_conflict, op.estimated_cardinality);
	auto &create = result.Cast<MerutableCreateTableAs>();
	create.keep_order = PhysicalPlanGenerator::PreserveInsertionOrder(context, plan);
	create.use_batches = create.keep_order && PhysicalPlanGenerator::UseBatchIndex(context, plan);
	result.children.push_back(plan);
	return result;
}

PhysicalOperator &MerutableCatalog::PlanInsert(ClientContext &context, PhysicalPlanGenerator &planner,
											   LogicalInsert &op, optional_ptr<PhysicalOperator> plan) {
	if (!plan) {
		throw BinderException("INSERT into table \"%s\" has no rows to insert", op.table.name);
	}
	if (!op.column_index_map.empty()) {
		plan = planner.ResolveDefaultsProjection(op, *plan);
	}
	auto &table = op.table.Cast<MerutableTableEntry>().Table();
	auto &result =
		planner.Make<MerutableInsert>(context, op.types, *this, table, on_duplicate, op.estimated_cardinality);
	auto &insert = result.Cast<MerutableInsert>();
	insert.return_rows = op.return_chunk;
	// Where each key comes once, their order does not matter.
	insert.keep_order = op.return_chunk || (on_duplicate != OnDuplicate::ERROR &&
											PhysicalPlanGenerator::PreserveInsertionOrder(context, *plan));
	insert.use_batches = insert.keep_order && !op.return_chunk && on_duplicate == OnDuplicate::REPLACE &&
						 PhysicalPlanGenerator::UseBatchIndex(context, *plan);
	insert.children.push_back(*plan);
	return insert;
}

PhysicalOperator &MerutableCatalog::PlanDelete(ClientContext &, PhysicalPlanGenerator &planner, LogicalDelete &op,
											   PhysicalOperator &plan) {
	op.table.Cast<MerutableTableEntry>().RequireCurrent();
	auto &result = planner.Make<MerutableDelete>(op, *this, op.table.Cast<MerutableTableEntry>().Table());
	result.children.push_back(plan);
	return result;
}

PhysicalOperator &MerutableCatalog::PlanUpdate(ClientContext &context, PhysicalPlanGenerator &planner,
											   LogicalUpdate &op, PhysicalOperator &plan) {
	auto &result = planner.Make<MerutableUpdate>(context, op, *this, op.table.Cast<MerutableTableEntry>().Table());
	result.children.push_back(plan);
	return result;
}

PhysicalOperator &MerutableCatalog::PlanMergeInto(ClientContext &context, PhysicalPlanGenerator &planner,
												  LogicalMergeInto &op, PhysicalOperator &plan) {
	// INSERT … ON CONFLICT, INSERT OR REPLACE and INSERT OR IGNORE arrive here as well.
	auto &entry = op.table.Cast<MerutableTableEntry>();
	entry.RequireCurrent();
	return MerutableMerge::Plan(context, planner, *this, entry.Table(), op, plan);
}

unique_ptr<LogicalOperator> MerutableCatalog::BindCreateIndex(Binder &, CreateStatement &, TableCatalogEntry &,
															  unique_ptr<LogicalOperator>) {
	throw BinderException("CREATE INDEX is not supported in merutable database \"%s\"", GetName());
}

unique_ptr<LogicalOperator> MerutableCatalog::BindAlterAddIndex(Binder &, TableCatalogEntry &,
																unique_ptr<LogicalOperator>,
																unique_ptr<CreateIndexInfo>,
																unique_ptr<AlterTableInfo>) {
	throw BinderException("ALTER TABLE is not supported in merutable database \"%s\"", GetName());
}

} // namespace duckdb
