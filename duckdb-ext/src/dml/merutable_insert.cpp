#include "dml/merutable_insert.hpp"

#include "catalog/merutable_catalog.hpp"
#include "catalog/merutable_transaction.hpp"

#include <numeric>

namespace duckdb {

MerutableInsert::MerutableInsert(PhysicalPlan &plan, ClientContext &context, vector<LogicalType> types,
								 MerutableCatalog &catalog, const MeruTable &table_p, idx_t estimated_cardinality)
	: MeruWriteOperator(plan, std::move(types), table_p, {}, estimated_cardinality), catalog(catalog),
	  checks(context, table) {
	columns.resize(table.columns.size());
	std::iota(columns.begin(), columns.end(), 0);
}

string MerutableInsert::GetName() const {
	return "MERUTABLE_INSERT";
}

unique_ptr<MeruWriteGlobalState> MerutableInsert::Begin(ClientContext &context) const {
	return make_uniq<MeruWriteGlobalState>(MerutableTransaction::Get(context, catalog).BeginWrite(context, table));
}

DataChunk &MerutableInsert::Prepare(ExecutionContext &context, MeruWriteGlobalState &, MeruWriteLocalState &,
									DataChunk &input) const {
	checks.Verify(context.client, input);
	return input;
}

} // namespace duckdb
