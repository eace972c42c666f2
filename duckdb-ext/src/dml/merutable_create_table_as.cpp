#include "dml/merutable_create_table_as.hpp"

#include "catalog/merutable_catalog.hpp"
#include "catalog/merutable_transaction.hpp"

#include <numeric>

namespace duckdb {

MerutableCreateTableAs::MerutableCreateTableAs(PhysicalPlan &plan, vector<LogicalType> types, MerutableCatalog &catalog,
											   MeruTable table_p, OnCreateConflict on_conflict,
											   idx_t estimated_cardinality)
	: MeruWriteOperator(plan, std::move(types), std::move(table_p), {}, estimated_cardinality), catalog(catalog),
	  on_conflict(on_conflict) {
	columns.resize(table.columns.size());
	std::iota(columns.begin(), columns.end(), 0);
}

string MerutableCreateTableAs::GetName() const {
	return "MERUTABLE_CREATE_TABLE_AS";
}

unique_ptr<MeruWriteGlobalState> MerutableCreateTableAs::Begin(ClientContext &context) const {
	auto &transaction = MerutableTransaction::Get(context, catalog);
	return make_uniq<MeruWriteGlobalState>(transaction.BeginCreate(context, table, on_conflict));
}

} // namespace duckdb
