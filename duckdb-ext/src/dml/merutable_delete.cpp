#include "dml/merutable_delete.hpp"

#include "catalog/merutable_catalog.hpp"
#include "catalog/merutable_transaction.hpp"
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

} // namespace

MerutableDelete::MerutableDelete(PhysicalPlan &plan, LogicalDelete &op, MerutableCatalog &catalog,
								 const MeruTable &table)
	: MeruWriteOperator(plan, op.types, table, table.key, op.estimated_cardinality), catalog(catalog),
	  may_repeat(CanRepeatRows(*op.children[0])) {
	for (auto &expression : op.expressions) {
		key_places.push_back(expression->Cast<BoundReferenceExpression>().index);
	}
	// Deleting twice is deleting once.
	keep_order = false;
}

string MerutableDelete::GetName() const {
	return "MERUTABLE_DELETE";
}

unique_ptr<MeruWriteGlobalState> MerutableDelete::Begin(ClientContext &context) const {
	auto result = make_uniq<DeleteGlobalState>(MerutableTransaction::Get(context, catalog).BeginWrite(context));
	if (may_repeat) {
		result->seen = make_uniq<KeySet>(context, table.KeyTypes());
	}
	return std::move(result);
}

DataChunk &MerutableDelete::Prepare(ExecutionContext &context, MeruWriteGlobalState &gstate_p,
									MeruWriteLocalState &lstate, DataChunk &input) const {
	auto &keys = lstate.prepared;
	if (keys.ColumnCount() == 0) {
		keys.Initialize(context.client, table.KeyTypes());
	}
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

void MerutableDelete::Send(MeruWriteGlobalState &gstate, ArrowArray &rows, const ArrowSchema &schema) const {
	gstate.write->Delete(rows, schema);
}

} // namespace duckdb
