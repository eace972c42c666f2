#pragma once

#include "dml/write_operator.hpp"

namespace duckdb {
class MerutableCatalog;

//! CREATE TABLE … AS: collects the rows, then creates the table and puts them. So nothing is created, and nothing
//! replaced, before the query below has come to its end.
class MerutableCreateTableAs : public MeruWriteOperator {
  public:
	//! replace: a table that exists.
	MerutableCreateTableAs(PhysicalPlan &plan, vector<LogicalType> types, MerutableCatalog &catalog, MeruTable table,
						   bool replace, idx_t estimated_cardinality);

	string GetName() const override;
	SinkResultType Sink(ExecutionContext &context, DataChunk &chunk, OperatorSinkInput &input) const override;

  protected:
	unique_ptr<MeruWriteGlobalState> Begin(ClientContext &context) const override;
	void End(ClientContext &context, MeruWriteGlobalState &gstate) const override;

  private:
	MerutableCatalog &catalog;
	bool replace;
};

} // namespace duckdb
