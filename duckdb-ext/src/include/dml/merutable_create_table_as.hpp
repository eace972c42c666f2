#pragma once

#include "dml/write_operator.hpp"
#include "duckdb/common/enums/on_create_conflict.hpp"

namespace duckdb {
class MerutableCatalog;

//! CREATE TABLE … AS: collects the rows, then creates the table and puts them. So nothing is created, and nothing
//! replaced, before the query below has come to its end.
class MerutableCreateTableAs : public MeruWriteOperator {
  public:
	MerutableCreateTableAs(PhysicalPlan &plan, vector<LogicalType> types, MerutableCatalog &catalog, MeruTable table,
						   OnCreateConflict on_conflict, idx_t estimated_cardinality);

	string GetName() const override;
	SinkResultType Sink(ExecutionContext &context, DataChunk &chunk, OperatorSinkInput &input) const override;

  protected:
	unique_ptr<MeruWriteGlobalState> Begin(ClientContext &context) const override;
	void End(ClientContext &context, MeruWriteGlobalState &gstate) const override;

  private:
	MerutableCatalog &catalog;
	OnCreateConflict on_conflict;
};

} // namespace duckdb
