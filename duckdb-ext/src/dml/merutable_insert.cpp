#include "dml/merutable_insert.hpp"

#include "catalog/merutable_catalog.hpp"
#include "catalog/merutable_transaction.hpp"
#include "dml/new_row_filter.hpp"

#include <numeric>

namespace duckdb {

namespace {

class InsertGlobalState : public MeruWriteGlobalState {
  public:
	using MeruWriteGlobalState::MeruWriteGlobalState;

	//! Where keys must be new.
	shared_ptr<NewKeys> new_keys;
	//! Of a MERGE that removes rows as well.
	shared_ptr<PendingRows> pending;
	//! Where rows of keys that are there are ignored: what lets the others through, and where they go.
	mutex filter_lock;
	unique_ptr<NewRowFilter> filter;
	unique_ptr<ArrowRowBuffer> filtered;
};

vector<idx_t> AllColumns(const MeruTable &table) {
	vector<idx_t> result(table.columns.size());
	std::iota(result.begin(), result.end(), 0);
	return result;
}

} // namespace

MerutableInsert::MerutableInsert(PhysicalPlan &plan, ClientContext &context, vector<LogicalType> types,
								 MerutableCatalog &catalog, const MeruTable &table_p, OnDuplicate on_duplicate,
								 idx_t estimated_cardinality)
	: MeruWriteOperator(plan, std::move(types), table_p, AllColumns(table_p), estimated_cardinality), catalog(catalog),
	  checks(context, table), on_duplicate(on_duplicate) {
}

MerutableInsert::MerutableInsert(PhysicalPlan &plan, ClientContext &context, MergeAction action,
								 MerutableCatalog &catalog, const MeruTable &table_p)
	: MeruWriteOperator(plan, std::move(action.types), table_p, AllColumns(table_p), action.estimated_cardinality),
	  catalog(catalog), checks(context, table), on_duplicate(OnDuplicate::ERROR), merge(std::move(action.pending)),
	  waits_for_removals(action.removes_rows) {
	return_rows = action.return_rows;
	keep_order = action.keep_order;
	ends_statement = false;
}

string MerutableInsert::GetName() const {
	return "MERUTABLE_INSERT";
}

InsertionOrderPreservingMap<string> MerutableInsert::ParamsToString() const {
	auto result = MeruWriteOperator::ParamsToString();
	switch (on_duplicate) {
	case OnDuplicate::REPLACE:
		result["On Duplicate"] = "replace";
		break;
	case OnDuplicate::ERROR:
		result["On Duplicate"] = "error";
		break;
	case OnDuplicate::IGNORE:
		result["On Duplicate"] = "ignore";
		break;
	}
	return result;
}

unique_ptr<MeruWriteGlobalState> MerutableInsert::Begin(ClientContext &context) const {
	auto &transaction = MerutableTransaction::Get(context, catalog);
	if (on_duplicate == OnDuplicate::REPLACE) {
		return make_uniq<InsertGlobalState>(transaction.BeginWrite(context, table));
	}
	auto result = make_uniq<InsertGlobalState>(transaction.BeginChange(context, table));
	if (waits_for_removals) {
		result->pending = merge->rows.lock();
	} else if (merge) {
		result->new_keys = merge->new_keys.lock();
	} else if (on_duplicate == OnDuplicate::ERROR) {
		result->new_keys = make_shared_ptr<NewKeys>(context, table, transaction.Lease(table)->Get());
	} else {
		result->filter = make_uniq<NewRowFilter>(context, table, transaction.Lease(table)->Get());
		result->filtered = make_uniq<ArrowRowBuffer>(context, table, columns);
	}
	return std::move(result);
}

DataChunk &MerutableInsert::Prepare(ExecutionContext &context, MeruWriteGlobalState &gstate_p,
									MeruWriteLocalState &lstate, DataChunk &input) const {
	auto &gstate = gstate_p.Cast<InsertGlobalState>();
	if (gstate.filter) {
		lock_guard<mutex> guard(gstate.filter_lock);
		gstate.filter->Add(input, [&](DataChunk &rows) { PutFiltered(context.client, gstate, rows); });
		return lstate.prepared;
	}
	checks.Verify(context.client, input);
	if (gstate.pending) {
		gstate.pending->Put(input);
		gstate.Keep(input);
		return lstate.prepared;
	}
	if (gstate.new_keys) {
		gstate.new_keys->Add(input);
	}
	return input;
}

void MerutableInsert::PutFiltered(ClientContext &context, MeruWriteGlobalState &gstate_p, DataChunk &rows) const {
	auto &gstate = gstate_p.Cast<InsertGlobalState>();
	checks.Verify(context, rows);
	gstate.filtered->Append(rows,
							[&](ArrowArray &array, const ArrowSchema &schema) { gstate.write->Put(array, schema); });
	gstate.Keep(rows);
}

void MerutableInsert::End(ClientContext &context, MeruWriteGlobalState &gstate_p) const {
	auto &gstate = gstate_p.Cast<InsertGlobalState>();
	if (gstate.filter) {
		gstate.filter->Flush([&](DataChunk &rows) { PutFiltered(context, gstate, rows); });
		gstate.filtered->Flush([&](ArrowArray &array, const ArrowSchema &schema) { gstate.write->Put(array, schema); });
	}
	if (gstate.new_keys && !merge) {
		gstate.new_keys->Finish();
	}
}

} // namespace duckdb
