#include "dml/merutable_update.hpp"

#include "catalog/merutable_catalog.hpp"
#include "catalog/merutable_transaction.hpp"
#include "dml/key_lookup.hpp"
#include "dml/key_set.hpp"
#include "duckdb/common/exception/binder_exception.hpp"
#include "duckdb/execution/expression_executor.hpp"
#include "duckdb/planner/operator/logical_update.hpp"

#include <algorithm>
#include <numeric>

namespace duckdb {

class UpdateGlobalState : public MeruWriteGlobalState {
  public:
	using MeruWriteGlobalState::MeruWriteGlobalState;

	//! The old keys of what was updated; not kept where rows come once and stay where they are.
	unique_ptr<KeySet> old_keys;
	//! New rows that wait for the end, where rows move.
	unique_ptr<ColumnDataCollection> moved;
};

namespace {

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
	if (moves_rows) {
		columns = table.key;
	} else {
		columns.resize(table.columns.size());
		std::iota(columns.begin(), columns.end(), 0);
	}
	values.resize(table.columns.size());
	for (idx_t i = 0; i < op.columns.size(); i++) {
		auto column = op.columns[i].index;
		auto is_default = op.expressions[i]->GetExpressionType() == ExpressionType::VALUE_DEFAULT;
		values[column] = (is_default ? op.bound_defaults[column] : op.expressions[i])->Copy();
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
	auto result = make_uniq<UpdateGlobalState>(MerutableTransaction::Get(context, catalog).BeginChange(context, table));
	if (may_repeat || moves_rows) {
		result->old_keys = make_uniq<KeySet>(context, table.KeyTypes());
	}
	if (moves_rows) {
		result->moved = make_uniq<ColumnDataCollection>(context, table.Types());
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
	if (!gstate.old_keys) {
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
	lock_guard<mutex> guard(gstate.lock);
	auto count = gstate.old_keys->Add(keys, first);
	if (count < input.size()) {
		keys.Slice(first, count);
		rows.Slice(first, count);
	}
	if (!moves_rows) {
		return rows;
	}
	gstate.moved->Append(rows);
	return keys;
}

DataChunk &MerutableUpdate::Returned(MeruWriteLocalState &lstate, DataChunk &) const {
	return lstate.prepared;
}

void MerutableUpdate::CheckNewKeys(ClientContext &context, UpdateGlobalState &gstate) const {
	KeyLookup lookup(context, MerutableTransaction::Get(context, catalog).Lease(table)->Get());
	KeySet new_keys(context, table.KeyTypes());
	DataChunk keys;
	keys.Initialize(context, table.KeyTypes());
	SelectionVector first(STANDARD_VECTOR_SIZE);
	auto refuse = [&](idx_t row) {
		string text;
		for (idx_t i = 0; i < table.key.size(); i++) {
			text += (i > 0 ? ", " : "") + table.columns[table.key[i]].name + ": " + keys.GetValue(i, row).ToString();
		}
		throw ConstraintException("UPDATE would give two rows of table \"%s\" the key %s", table.name, text);
	};
	for (auto &chunk : gstate.moved->Chunks()) {
		if (context.interrupted) {
			throw InterruptException();
		}
		keys.Reset();
		keys.ReferenceColumns(chunk, table.key);
		keys.SetCardinality(chunk.size());
		auto count = new_keys.Add(keys, first);
		if (count < keys.size()) {
			vector<bool> is_new(keys.size(), false);
			for (idx_t i = 0; i < count; i++) {
				is_new[first.get_index(i)] = true;
			}
			refuse(NumericCast<idx_t>(std::find(is_new.begin(), is_new.end(), false) - is_new.begin()));
		}
		count = gstate.old_keys->Add(keys, first);
		for (idx_t i = 0; i < count; i++) {
			auto row = first.get_index(i);
			if (lookup.Contains(keys, row)) {
				refuse(row);
			}
		}
	}
}

void MerutableUpdate::End(ClientContext &context, MeruWriteGlobalState &gstate_p) const {
	auto &gstate = gstate_p.Cast<UpdateGlobalState>();
	if (!moves_rows) {
		return;
	}
	vector<idx_t> all_columns(table.columns.size());
	std::iota(all_columns.begin(), all_columns.end(), 0);
	ArrowRowBuffer buffer(context, table, all_columns);
	auto put = [&](ArrowArray &array, const ArrowSchema &schema) {
		gstate.write->Put(array, schema);
	};
	// NULLs are refused by the buffer, so that no key has one when the engine is asked for it.
	for (auto &chunk : gstate.moved->Chunks()) {
		buffer.Append(chunk, put);
	}
	CheckNewKeys(context, gstate);
	buffer.Flush(put);
}

} // namespace duckdb
