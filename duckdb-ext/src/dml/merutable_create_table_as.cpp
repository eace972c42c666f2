#include "dml/merutable_create_table_as.hpp"

#include "catalog/merutable_catalog.hpp"
#include "catalog/merutable_transaction.hpp"

#include <numeric>

namespace duckdb {

namespace {

class CreateTableAsState : public MeruWriteGlobalState {
  public:
	CreateTableAsState(ClientContext &context, const MeruTable &table)
		: MeruWriteGlobalState(nullptr), rows(context, table.Types()) {
	}

	ColumnDataCollection rows;
};

} // namespace

MerutableCreateTableAs::MerutableCreateTableAs(PhysicalPlan &plan, vector<LogicalType> types, MerutableCatalog &catalog,
											   MeruTable table_p, bool replace, idx_t estimated_cardinality)
	: MeruWriteOperator(plan, std::move(types), std::move(table_p), {}, estimated_cardinality), catalog(catalog),
	  replace(replace) {
	columns.resize(table.columns.size());
	std::iota(columns.begin(), columns.end(), 0);
}

string MerutableCreateTableAs::GetName() const {
	return "MERUTABLE_CREATE_TABLE_AS";
}

unique_ptr<MeruWriteGlobalState> MerutableCreateTableAs::Begin(ClientContext &context) const {
	return make_uniq<CreateTableAsState>(context, table);
}

SinkResultType MerutableCreateTableAs::Sink(ExecutionContext &, DataChunk &chunk, OperatorSinkInput &input) const {
	auto &gstate = input.global_state.Cast<CreateTableAsState>();
	gstate.rows.Append(chunk);
	return SinkResultType::NEED_MORE_INPUT;
}

void MerutableCreateTableAs::End(ClientContext &context, MeruWriteGlobalState &gstate_p) const {
	auto &gstate = gstate_p.Cast<CreateTableAsState>();
	auto &transaction = MerutableTransaction::Get(context, catalog);
	transaction.CreateTable(table, replace);
	gstate.write = transaction.BeginWrite(context);
	ArrowRowBuffer buffer(context, table, columns);
	auto send = [&](ArrowArray &array, const ArrowSchema &schema) {
		gstate.write->Put(array, schema);
	};
	for (auto &chunk : gstate.rows.Chunks()) {
		buffer.Append(chunk, send);
	}
	buffer.Flush(send);
	gstate.row_count = gstate.rows.Count();
}

} // namespace duckdb
