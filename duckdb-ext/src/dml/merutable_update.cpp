#include "dml/merutable_update.hpp"

#include "catalog/merutable_catalog.hpp"
#include "catalog/merutable_transaction.hpp"
#include "dml/key_set.hpp"
#include "duckdb/common/exception/binder_exception.hpp"
#include "duckdb/execution/expression_executor.hpp"
#include "duckdb/planner/operator/logical_update.hpp"

#include <numeric>

namespace duckdb {

namespace {

class UpdateGlobalState : public MeruWriteGlobalState {
  public:
	using MeruWriteGlobalState::MeruWriteGlobalState;

	//! The old keys of what was updated, where rows can come more than once but stay where they are.
	unique_ptr<KeySet> old_keys;
	//! Where rows move.
	shared_ptr<PendingRows> pending;
};

class UpdateLocalState : public MeruWriteLocalState {
  public:
	UpdateLocalState(ClientContext &context, const MeruTable &table, vector<idx_t> columns,
					 const vector<unique_ptr<Expression>> &values)
		: MeruWriteLocalState(context, table, std::move(columns)), executor(context, values) {
		prepared.Initialize(context, table.Types());
		keys.Initialize(context, table.KeyTypes());
	}

	ExpressionExecutor executor;
	DataChunk keys;
};

} // namespace

MerutableUpdate::MerutableUpdate(PhysicalPlan &plan, ClientContext &context, LogicalUpdate &op,
								 MerutableCatalog &catalog, const MeruTable &table_p)
	: MeruWriteOperator(plan, op.types, table_p, {}, op.estimated_cardinality), catalog(catalog),
	  checks(context, table), may_repeat(CanRepeatRows(*op.children[0])), moves_rows(op.update_is_del_and_insert) {
	return_rows = op.return_chunk;
	// A row that comes once is written once.
	keep_order = may_repeat || return_rows || moves_rows;
	SetValues(op.columns, op.expressions, op.bound_defaults);
}

MerutableUpdate::MerutableUpdate(PhysicalPlan &plan, ClientContext &context, MergeAction action,
								 MerutableCatalog &catalog, const MeruTable &table_p,
								 const vector<PhysicalIndex> &set_columns,
								 const vector<unique_ptr<Expression>> &expressions,
								 const vector<unique_ptr<Expression>> &bound_defaults, bool moves_rows)
	: MeruWriteOperator(plan, std::move(action.types), table_p, {}, action.estimated_cardinality), catalog(catalog),
	  checks(context, table), may_repeat(false), moves_rows(moves_rows), merge(std::move(action.pending)) {
	return_rows = action.return_rows;
	keep_order = action.keep_order;
	ends_statement = false;
	SetValues(set_columns, expressions, bound_defaults);
}

void MerutableUpdate::SetValues(const vector<PhysicalIndex> &set_columns,
								const vector<unique_ptr<Expression>> &expressions,
								const vector<unique_ptr<Expression>> &bound_defaults) {
	columns.resize(table.columns.size());
	std::iota(columns.begin(), columns.end(), 0);
	values.resize(table.columns.size());
	for (idx_t i = 0; i < set_columns.size(); i++) {
		auto column = set_columns[i].index;
		auto is_default = expressions[i]->GetExpressionType() == ExpressionType::VALUE_DEFAULT;
		values[column] = (is_default ? bound_defaults[column] : expressions[i])->Copy();
	}
	for (idx_t i = 0; i < values.size(); i++) {
		if (!values[i]) {
			throw BinderException("UPDATE of table \"%s\": column \"%s\" is not part of the plan", table.name,
								  table.columns[i].name);
		}
	}
}

string MerutableUpdate::GetName() const {
	return "MERUTABLE_UPDATE";
}

unique_ptr<LocalSinkState> MerutableUpdate::GetLocalSinkState(ExecutionContext &context) const {
	return make_uniq<UpdateLocalState>(context.client, table, columns, values);
}

unique_ptr<MeruWriteGlobalState> MerutableUpdate::Begin(ClientContext &context) const {
	auto &transaction = MerutableTransaction::Get(context, catalog);
	auto result = make_uniq<UpdateGlobalState>(transaction.BeginChange(context, table));
	if (moves_rows) {
		result->pending =
			merge ? merge->rows.lock() : make_shared_ptr<PendingRows>(context, table, transaction.Lease(table)->Get());
	} else if (may_repeat) {
		result->old_keys = make_uniq<KeySet>(context, table.KeyTypes());
	}
	return std::move(result);
}

DataChunk &MerutableUpdate::Prepare(ExecutionContext &context, MeruWriteGlobalState &gstate_p,
									MeruWriteLocalState &lstate_p, DataChunk &input) const {
	auto &gstate = gstate_p.Cast<UpdateGlobalState>();
	auto &lstate = lstate_p.Cast<UpdateLocalState>();
	auto &rows = lstate.prepared;
	rows.Reset();
	lstate.executor.Execute(input, rows);
	rows.SetCardinality(input.size());
	checks.Verify(context.client, rows);
	if (!gstate.old_keys && !gstate.pending) {
		return rows;
	}
	auto &keys = lstate.keys;
	keys.Reset();
	auto first_key = input.ColumnCount() - table.key.size();
	for (idx_t i = 0; i < table.key.size(); i++) {
		keys.data[i].Reference(input.data[first_key + i]);
	}
	keys.SetCardinality(input.size());
	SelectionVector first(STANDARD_VECTOR_SIZE);
	auto count = gstate.pending ? gstate.pending->Remove(keys, first) : gstate.old_keys->Add(keys, first);
	if (count < input.size()) {
		rows.Slice(first, count);
	}
	if (gstate.pending) {
		gstate.pending->Put(rows);
		gstate.Keep(rows);
		rows.SetCardinality(0);
	}
	return rows;
}

void MerutableUpdate::End(ClientContext &context, MeruWriteGlobalState &gstate_p) const {
	auto &gstate = gstate_p.Cast<UpdateGlobalState>();
	if (gstate.pending && !merge) {
		gstate.pending->Finish(context, *gstate.write);
	}
}

} // namespace duckdb
