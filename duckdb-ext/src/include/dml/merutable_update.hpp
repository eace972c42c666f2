#pragma once

#include "dml/row_checks.hpp"
#include "dml/write_operator.hpp"
#include "duckdb/planner/expression.hpp"

namespace duckdb {
class LogicalUpdate;
class MerutableCatalog;
class UpdateGlobalState;

//! UPDATE: the new rows are put over the old ones. Where key columns change, the rows move: the old keys are deleted
//! while the statement runs and the new rows put at its end, so that a row can move to a key that another one leaves.
class MerutableUpdate : public MeruWriteOperator {
  public:
	//! The plan below yields a value for each column of the table, a reference to which is in the operator's
	//! expressions, or a DEFAULT there; and last the key of the old row.
	MerutableUpdate(PhysicalPlan &plan, ClientContext &context, LogicalUpdate &op, MerutableCatalog &catalog,
					const MeruTable &table);

	string GetName() const override;
	unique_ptr<LocalSinkState> GetLocalSinkState(ExecutionContext &context) const override;

  protected:
	unique_ptr<MeruWriteGlobalState> Begin(ClientContext &context) const override;
	DataChunk &Prepare(ExecutionContext &context, MeruWriteGlobalState &gstate, MeruWriteLocalState &lstate,
					   DataChunk &input) const override;
	DataChunk &Returned(MeruWriteLocalState &lstate, DataChunk &rows) const override;
	bool Deletes() const override {
		return moves_rows;
	}
	void End(ClientContext &context, MeruWriteGlobalState &gstate) const override;

  private:
	//! Throws where a row would move to a key that is taken.
	void CheckNewKeys(ClientContext &context, UpdateGlobalState &gstate) const;

	MerutableCatalog &catalog;
	RowChecks checks;
	//! One for each column of the table, over the chunks from below.
	vector<unique_ptr<Expression>> values;
	//! Whether a row can come more than once; the first one counts.
	bool may_repeat;
	bool moves_rows;
};

} // namespace duckdb
