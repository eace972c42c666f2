#pragma once

#include "catalog/on_duplicate.hpp"
#include "dml/merge_action.hpp"
#include "dml/row_checks.hpp"
#include "dml/write_operator.hpp"

namespace duckdb {
class MerutableCatalog;

//! INSERT: rows of all columns, put as part of the transaction. What becomes of a row whose key is there already, the
//! database's ON_DUPLICATE says; in a MERGE it is an error.
class MerutableInsert : public MeruWriteOperator {
  public:
	MerutableInsert(PhysicalPlan &plan, ClientContext &context, vector<LogicalType> types, MerutableCatalog &catalog,
					const MeruTable &table, OnDuplicate on_duplicate, idx_t estimated_cardinality);
	//! As an action of a MERGE.
	MerutableInsert(PhysicalPlan &plan, ClientContext &context, MergeAction action, MerutableCatalog &catalog,
					const MeruTable &table);

	string GetName() const override;
	InsertionOrderPreservingMap<string> ParamsToString() const override;

  protected:
	unique_ptr<MeruWriteGlobalState> Begin(ClientContext &context) const override;
	DataChunk &Prepare(ExecutionContext &context, MeruWriteGlobalState &gstate, MeruWriteLocalState &lstate,
					   DataChunk &input) const override;
	void End(ClientContext &context, MeruWriteGlobalState &gstate) const override;

  private:
	//! Writes rows that the filter let through.
	void PutFiltered(ClientContext &context, MeruWriteGlobalState &gstate, DataChunk &rows) const;

	MerutableCatalog &catalog;
	RowChecks checks;
	OnDuplicate on_duplicate;
	//! Set if this is an action of a MERGE; and whether that removes rows as well, so that keys may become free.
	shared_ptr<MergePending> merge;
	bool waits_for_removals = false;
};

} // namespace duckdb
