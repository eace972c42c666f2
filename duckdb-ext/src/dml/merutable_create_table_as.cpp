#include "dml/merutable_create_table_as.hpp"

#include "catalog/merutable_catalog.hpp"
#include "catalog/merutable_table_entry.hpp"
#include "catalog/merutable_transaction.hpp"
#include "duckdb/common/exception/transaction_exception.hpp"

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
	if (!transaction.CreateTable(table, on_conflict)) {
		// IF NOT EXISTS, and somebody else was faster.
		return;
	}
	// The transaction may still see the table that was replaced: the query below may have read it.
	auto created = catalog.CurrentTable().entry;
	if (!created) {
		throw TransactionException("Table \"%s\" was dropped before it was filled", table.name);
	}
	gstate.write = transaction.BeginWrite(context, created->Table());
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
