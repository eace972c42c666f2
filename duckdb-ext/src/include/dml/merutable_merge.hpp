#pragma once

#include "dml/merge_action.hpp"
#include "duckdb/execution/operator/persistent/physical_merge_into.hpp"

namespace duckdb {
class LogicalMergeInto;
class MerutableCatalog;
class PhysicalPlanGenerator;

//! MERGE INTO, and what DuckDB makes one of: INSERT OR REPLACE, INSERT OR IGNORE and ON CONFLICT. DuckDB's operator
//! finds out what becomes of each row; the actions are our INSERT, UPDATE and DELETE, which write to one change.
class MerutableMerge : public PhysicalMergeInto {
  public:
	static PhysicalOperator &Plan(ClientContext &context, PhysicalPlanGenerator &planner, MerutableCatalog &catalog,
								  const MeruTable &table, LogicalMergeInto &op, PhysicalOperator &child);

	using actions_t = map<MergeActionCondition, vector<unique_ptr<MergeIntoOperator>>>;
	MerutableMerge(PhysicalPlan &plan, LogicalMergeInto &op, actions_t actions, bool parallel,
				   MerutableCatalog &catalog, const MeruTable &table, shared_ptr<MergePending> pending);

	string GetName() const override;
	InsertionOrderPreservingMap<string> ParamsToString() const override;
	unique_ptr<GlobalSinkState> GetGlobalSinkState(ClientContext &context) const override;
	SinkFinalizeType Finalize(Pipeline &pipeline, Event &event, ClientContext &context,
							  OperatorSinkFinalizeInput &input) const override;

  private:
	MerutableCatalog &catalog;
	MeruTable table;
	//! Made when the statement starts to run.
	shared_ptr<MergePending> pending;
};

} // namespace duckdb
