#pragma once

#include "dml/write_operator.hpp"
#include "duckdb/common/enums/on_create_conflict.hpp"

namespace duckdb {
class MerutableCatalog;

//! CREATE TABLE … AS: table and rows come in one step, when the transaction commits. Until then nothing is created, and
//! nothing replaced.
class MerutableCreateTableAs : public MeruWriteOperator {
  public:
	MerutableCreateTableAs(PhysicalPlan &plan, vector<LogicalType> types, MerutableCatalog &catalog, MeruTable table,
						   OnCreateConflict on_conflict, idx_t estimated_cardinality);

	string GetName() const override;

  protected:
	unique_ptr<MeruWriteGlobalState> Begin(ClientContext &context) const override;

  private:
	MerutableCatalog &catalog;
	OnCreateConflict on_conflict;
};

} // namespace duckdb
