#pragma once

#include "dml/merge_action.hpp"
#include "dml/row_checks.hpp"
#include "dml/write_operator.hpp"
#include "duckdb/planner/expression.hpp"

namespace duckdb {
class LogicalUpdate;
class MerutableCatalog;

//! UPDATE: the new rows are put over the old ones. Where key columns change, the rows move, at the end of the
//! statement, so that a row can move to a key that another one leaves.
class MerutableUpdate : public MeruWriteOperator {
  public:
	//! The plan below yields a value for each column of the table, a reference to which is in the operator's
	//! expressions, or a DEFAULT there; and last the key of the old row.
	MerutableUpdate(PhysicalPlan &plan, ClientContext &context, LogicalUpdate &op, MerutableCatalog &catalog,
					const MeruTable &table);

	//! As an action of a MERGE. columns, expressions: what is set, see LogicalUpdate; the chunks have the key of the
	//! old row last. Of several updates of a row that stays where it is, the last one counts.
	MerutableUpdate(PhysicalPlan &plan, ClientContext &context, MergeAction action, MerutableCatalog &catalog,
					const MeruTable &table, const vector<PhysicalIndex> &columns,
					const vector<unique_ptr<Expression>> &expressions,
					const vector<unique_ptr<Expression>> &bound_defaults, bool moves_rows);

	string GetName() const override;
	unique_ptr<LocalSinkState> GetLocalSinkState(ExecutionContext &context) const override;

  protected:
	unique_ptr<MeruWriteGlobalState> Begin(ClientContext &context) const override;
	DataChunk &Prepare(ExecutionContext &context, MeruWriteGlobalState &gstate, MeruWriteLocalState &lstate,
					   DataChunk &input) const override;
	void End(ClientContext &context, MeruWriteGlobalState &gstate) const override;

  private:
	void SetValues(const vector<PhysicalIndex> &set_columns, const vector<unique_ptr<Expression>> &expressions,
				   const vector<unique_ptr<Expression>> &bound_defaults);

	MerutableCatalog &catalog;
	RowChecks checks;
	//! One for each column of the table, over the chunks from below.
	vector<unique_ptr<Expression>> values;
	//! Whether a row can come more than once; the first one counts.
	bool may_repeat;
	bool moves_rows;
	//! Set if this is an action of a MERGE.
	shared_ptr<MergePending> merge;
};

} // namespace duckdb
