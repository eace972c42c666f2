#include "dml/merutable_delete.hpp"

#include "catalog/merutable_catalog.hpp"
#include "catalog/merutable_transaction.hpp"
#include "common/key_arrow.hpp"
#include "common/snapshot.hpp"
#include "dml/key_set.hpp"
#include "duckdb/planner/expression/bound_reference_expression.hpp"
#include "duckdb/planner/operator/logical_delete.hpp"

namespace duckdb {

namespace {

class DeleteGlobalState : public MeruWriteGlobalState {
  public:
	using MeruWriteGlobalState::MeruWriteGlobalState;

	//! What was deleted already, where rows can come more than once.
	unique_ptr<KeySet> seen;
	//! Of a MERGE: rows go when it ends.
	shared_ptr<PendingRows> pending;
};

class DeleteLocalState : public MeruWriteLocalState {
  public:
	DeleteLocalState(ClientContext &context, const MeruTable &table) : MeruWriteLocalState(context, table, table.key) {
		prepared.Initialize(context, table.KeyTypes());
	}

	//! For RETURNING: the whole rows of what is prepared.
	unique_ptr<RowLookup> lookup;
};

} // namespace

MerutableDelete::MerutableDelete(PhysicalPlan &plan, LogicalDelete &op, MerutableCatalog &catalog,
								 const MeruTable &table)
	: MeruWriteOperator(plan, op.types, table, table.key, op.estimated_cardinality), catalog(catalog),
	  may_repeat(CanRepeatRows(*op.children[0])) {
	for (auto &expression : op.expressions) {
		key_places.push_back(expression->Cast<BoundReferenceExpression>().index);
	}
	return_rows = op.return_chunk;
	// Deleting twice is deleting once.
	keep_order = return_rows;
}

MerutableDelete::MerutableDelete(PhysicalPlan &plan, MergeAction action, MerutableCatalog &catalog,
								 const MeruTable &table_p, idx_t first_key)
	: MeruWriteOperator(plan, std::move(action.types), table_p, table_p.key, action.estimated_cardinality),
	  catalog(catalog), may_repeat(true), merge(std::move(action.pending)) {
	for (idx_t i = 0; i < table.key.size(); i++) {
		key_places.push_back(first_key + i);
	}
	return_rows = action.return_rows;
	keep_order = action.keep_order;
	ends_statement = false;
}

string MerutableDelete::GetName() const {
	return "MERUTABLE_DELETE";
}

unique_ptr<MeruWriteGlobalState> MerutableDelete::Begin(ClientContext &context) const {
	auto result = make_uniq<DeleteGlobalState>(MerutableTransaction::Get(context, catalog).BeginChange(context, table));
	if (merge) {
		result->pending = merge->rows.lock();
	} else if (may_repeat) {
		result->seen = make_uniq<KeySet>(context, table.KeyTypes());
	}
	return std::move(result);
}

unique_ptr<LocalSinkState> MerutableDelete::GetLocalSinkState(ExecutionContext &context) const {
	auto result = make_uniq<DeleteLocalState>(context.client, table);
	if (return_rows) {
		auto snapshot = MerutableTransaction::Get(context.client, catalog).Lease(table)->Get();
		result->lookup = make_uniq<RowLookup>(context.client, std::move(snapshot));
	}
	return std::move(result);
}

DataChunk &MerutableDelete::Prepare(ExecutionContext &, MeruWriteGlobalState &gstate_p, MeruWriteLocalState &lstate,
									DataChunk &input) const {
	auto &keys = lstate.prepared;
	keys.Reset();
	keys.ReferenceColumns(input, key_places);
	keys.SetCardinality(input.size());
	if (!may_repeat) {
		return keys;
	}
	auto &gstate = gstate_p.Cast<DeleteGlobalState>();
	SelectionVector first(STANDARD_VECTOR_SIZE);
	if (gstate.pending) {
		keys.Slice(first, gstate.pending->Remove(keys, first));
		gstate.Keep(keys.size() > 0 && gstate.returned ? Returned(lstate, keys) : keys);
		keys.SetCardinality(0);
		return keys;
	}
	lock_guard<mutex> guard(gstate.lock);
	auto count = gstate.seen->Add(keys, first);
	keys.Slice(first, count);
	return keys;
}

DataChunk &MerutableDelete::Returned(MeruWriteLocalState &lstate_p, DataChunk &keys) const {
	auto &rows = lstate_p.Cast<DeleteLocalState>().lookup->Find(keys);
	if (rows.size() != keys.size()) {
		throw IOException("A row that is being deleted from table \"%s\" cannot be found by its key", table.name);
	}
	return rows;
}

} // namespace duckdb
