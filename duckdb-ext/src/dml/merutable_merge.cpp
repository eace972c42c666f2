#include "dml/merutable_merge.hpp"

#include "catalog/merutable_catalog.hpp"
#include "catalog/merutable_transaction.hpp"
#include "dml/merutable_delete.hpp"
#include "dml/merutable_insert.hpp"
#include "dml/merutable_update.hpp"
#include "duckdb/catalog/catalog_entry/table_catalog_entry.hpp"
#include "duckdb/common/enum_util.hpp"
#include "duckdb/execution/physical_plan_generator.hpp"
#include "duckdb/parser/statement/merge_into_statement.hpp"
#include "duckdb/planner/operator/logical_merge_into.hpp"

namespace duckdb {

namespace {

bool RemovesRows(const LogicalMergeInto &op) {
	for (auto &entry : op.actions) {
		for (auto &action : entry.second) {
			if (action->action_type == MergeActionType::MERGE_DELETE || action->update_is_del_and_insert) {
				return true;
			}
		}
	}
	return false;
}

//! The values of an INSERT for all columns: those that it names, and defaults.
vector<unique_ptr<Expression>> InsertValues(LogicalMergeInto &op, BoundMergeIntoAction &action) {
	if (action.column_index_map.empty()) {
		return std::move(action.expressions);
	}
	vector<unique_ptr<Expression>> result;
	for (auto &column : op.table.GetColumns().Physical()) {
		auto place = action.column_index_map[column.Physical()];
		result.push_back(place == DConstants::INVALID_INDEX ? op.bound_defaults[column.StorageOid()]->Copy()
															: std::move(action.expressions[place]));
	}
	return result;
}

} // namespace

PhysicalOperator &MerutableMerge::Plan(ClientContext &context, PhysicalPlanGenerator &planner,
									   MerutableCatalog &catalog, const MeruTable &table, LogicalMergeInto &op,
									   PhysicalOperator &child) {
	MergeAction shared;
	shared.types = op.types;
	if (op.return_chunk) {
		// The last one is what was done, which the merge itself adds.
		shared.types.pop_back();
	}
	shared.pending = make_shared_ptr<MergePending>();
	shared.return_rows = op.return_chunk;
	shared.keep_order = op.return_chunk;
	shared.removes_rows = RemovesRows(op);
	shared.estimated_cardinality = op.EstimateCardinality(context);

	actions_t actions;
	for (auto &entry : op.actions) {
		for (auto &action : entry.second) {
			auto planned = make_uniq<MergeIntoOperator>();
			planned->action_type = action->action_type;
			planned->condition = std::move(action->condition);
			switch (action->action_type) {
			case MergeActionType::MERGE_UPDATE:
				planned->op =
					planner.Make<MerutableUpdate>(context, shared, catalog, table, action->columns, action->expressions,
												  op.bound_defaults, action->update_is_del_and_insert);
				break;
			case MergeActionType::MERGE_DELETE:
				planned->op = planner.Make<MerutableDelete>(shared, catalog, table, op.row_id_start);
				break;
			case MergeActionType::MERGE_INSERT:
				planned->op = planner.Make<MerutableInsert>(context, shared, catalog, table);
				planned->expressions = InsertValues(op, *action);
				break;
			case MergeActionType::MERGE_ERROR:
				planned->expressions = std::move(action->expressions);
				break;
			case MergeActionType::MERGE_DO_NOTHING:
				break;
			default:
				throw NotImplementedException("MERGE: this action is not supported in merutable tables");
			}
			actions[entry.first].push_back(std::move(planned));
		}
	}
	auto &result =
		planner.Make<MerutableMerge>(op, std::move(actions), !shared.keep_order, catalog, table, shared.pending);
	result.children.push_back(child);
	return result;
}

MerutableMerge::MerutableMerge(PhysicalPlan &plan, LogicalMergeInto &op, actions_t actions_p, bool parallel,
							   MerutableCatalog &catalog, const MeruTable &table, shared_ptr<MergePending> pending)
	: PhysicalMergeInto(plan, op.types, std::move(actions_p), op.row_id_start, op.source_marker, parallel,
						op.return_chunk),
	  catalog(catalog), table(table), pending(std::move(pending)) {
}

string MerutableMerge::GetName() const {
	return "MERUTABLE_MERGE";
}

InsertionOrderPreservingMap<string> MerutableMerge::ParamsToString() const {
	InsertionOrderPreservingMap<string> result;
	result["Table"] = table.name;
	string text;
	for (auto &range : action_ranges) {
		for (idx_t i = range.start; i < range.end; i++) {
			auto &action = *actions[i];
			text += text.empty() ? "" : "\n";
			text += MergeIntoStatement::ActionConditionToString(range.condition);
			text += action.condition ? " AND " + action.condition->ToString() : "";
			text += ": " + StringUtil::Replace(EnumUtil::ToString(action.action_type), "MERGE_", "");
		}
	}
	result["Actions"] = text;
	return result;
}

unique_ptr<GlobalSinkState> MerutableMerge::GetGlobalSinkState(ClientContext &context) const {
	auto &transaction = MerutableTransaction::Get(context, catalog);
	auto write = transaction.BeginChange(context, table);
	auto snapshot = transaction.Lease(table)->Get();
	auto rows = make_shared_ptr<PendingRows>(context, table, snapshot);
	auto new_keys = make_shared_ptr<NewKeys>(context, table, snapshot);
	pending->write = write;
	pending->rows = rows;
	pending->new_keys = new_keys;
	return PhysicalMergeInto::GetGlobalSinkState(context);
}

SinkFinalizeType MerutableMerge::Finalize(Pipeline &pipeline, Event &event, ClientContext &context,
										  OperatorSinkFinalizeInput &input) const {
	auto result = PhysicalMergeInto::Finalize(pipeline, event, context, input);
	if (result != SinkFinalizeType::BLOCKED) {
		auto write = pending->write.lock();
		auto rows = pending->rows.lock();
		auto new_keys = pending->new_keys.lock();
		if (new_keys) {
			new_keys->Finish();
		}
		if (rows && write) {
			rows->Finish(context, *write);
		}
		if (write) {
			write->EndStatement();
		}
	}
	return result;
}

} // namespace duckdb
