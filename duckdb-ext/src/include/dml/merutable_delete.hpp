#pragma once

#include "dml/merge_action.hpp"
#include "dml/write_operator.hpp"

namespace duckdb {
class LogicalDelete;
class MerutableCatalog;

//! DELETE: the keys of the rows that were found. Counts each row once, however often a join brought it.
class MerutableDelete : public MeruWriteOperator {
  public:
	MerutableDelete(PhysicalPlan &plan, LogicalDelete &op, MerutableCatalog &catalog, const MeruTable &table);
	//! As an action of a MERGE, whose chunks have the key's columns from first_key on.
	MerutableDelete(PhysicalPlan &plan, MergeAction action, MerutableCatalog &catalog, const MeruTable &table,
					idx_t first_key);

	string GetName() const override;
	unique_ptr<LocalSinkState> GetLocalSinkState(ExecutionContext &context) const override;

  protected:
	unique_ptr<MeruWriteGlobalState> Begin(ClientContext &context) const override;
	DataChunk &Prepare(ExecutionContext &context, MeruWriteGlobalState &gstate, MeruWriteLocalState &lstate,
					   DataChunk &input) const override;
	DataChunk &Returned(MeruWriteLocalState &lstate, DataChunk &rows) const override;
	bool Deletes() const override {
		return true;
	}

  private:
	MerutableCatalog &catalog;
	//! Where the chunks from below have the key's columns.
	vector<idx_t> key_places;
	//! Whether a row can come more than once.
	bool may_repeat;
	//! Set if this is an action of a MERGE.
	shared_ptr<MergePending> merge;
};

} // namespace duckdb
