#pragma once

#include "dml/row_checks.hpp"
#include "dml/write_operator.hpp"

namespace duckdb {
class MerutableCatalog;

//! INSERT: rows of all columns, put as part of the transaction. A row of an existing key replaces it.
class MerutableInsert : public MeruWriteOperator {
  public:
	MerutableInsert(PhysicalPlan &plan, ClientContext &context, vector<LogicalType> types, MerutableCatalog &catalog,
					const MeruTable &table, idx_t estimated_cardinality);

	string GetName() const override;

  protected:
	unique_ptr<MeruWriteGlobalState> Begin(ClientContext &context) const override;
	DataChunk &Prepare(ExecutionContext &context, MeruWriteGlobalState &gstate, MeruWriteLocalState &lstate,
					   DataChunk &input) const override;

  private:
	MerutableCatalog &catalog;
	RowChecks checks;
};

} // namespace duckdb
