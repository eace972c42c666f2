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
};

class DeleteLocalState : public MeruWriteLocalState {
  public:
	DeleteLocalState(ClientContext &context, const MeruTable &table)
		: MeruWriteLocalState(context, table, table.key), context(context) {
		prepared.Initialize(context, table.KeyTypes());
	}

	ClientContext &context;
	//! For RETURNING: what the transaction sees, and the whole rows of what is prepared.
	shared_ptr<MeruSnapshotRef> snapshot;
	DataChunk whole;
	DataChunk key;
	DataChunk row;
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

string MerutableDelete::GetName() const {
	return "MERUTABLE_DELETE";
}

unique_ptr<MeruWriteGlobalState> MerutableDelete::Begin(ClientContext &context) const {
	auto result = make_uniq<DeleteGlobalState>(MerutableTransaction::Get(context, catalog).BeginChange(context, table));
	if (may_repeat) {
		result->seen = make_uniq<KeySet>(context, table.KeyTypes());
	}
	return std::move(result);
}

unique_ptr<LocalSinkState> MerutableDelete::GetLocalSinkState(ExecutionContext &context) const {
	auto result = make_uniq<DeleteLocalState>(context.client, table);
	if (return_rows) {
		result->snapshot = MerutableTransaction::Get(context.client, catalog).Lease(table)->Get();
		result->whole.Initialize(context.client, table.Types());
		result->row.Initialize(context.client, table.Types(), 1);
		result->key.Initialize(context.client, table.KeyTypes(), 1);
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
	lock_guard<mutex> guard(gstate.lock);
	auto count = gstate.seen->Add(keys, first);
	keys.Slice(first, count);
	return keys;
}

DataChunk &MerutableDelete::Returned(MeruWriteLocalState &lstate_p, DataChunk &keys) const {
	auto &lstate = lstate_p.Cast<DeleteLocalState>();
	SelectionVector place(1);
	lstate.whole.Reset();
	for (idx_t i = 0; i < keys.size(); i++) {
		place.set_index(0, i);
		lstate.key.Reset();
		lstate.key.Slice(keys, place, 1);
		lstate.row.Reset();
		if (!LookupKey(lstate.context, *lstate.snapshot, lstate.key, lstate.row)) {
			throw IOException("A row that is being deleted from table \"%s\" cannot be found by its key", table.name);
		}
		lstate.whole.Append(lstate.row);
	}
	return lstate.whole;
}

} // namespace duckdb
