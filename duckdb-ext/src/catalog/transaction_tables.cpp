#include "catalog/transaction_tables.hpp"

#include "catalog/alter_table.hpp"
#include "catalog/merutable_table_entry.hpp"
#include "duckdb/common/exception/transaction_exception.hpp"
#include "duckdb/common/string_util.hpp"
#include "duckdb/main/client_context.hpp"

namespace duckdb {

namespace {

//! The versions of views that only a transaction has, apart from those of the catalog.
atomic<idx_t> last_view_version{idx_t(1) << 62};

} // namespace

TransactionTables::TransactionTables(MerutableCatalog &catalog) : catalog(catalog) {
	view = catalog.TablesDuring([&]() { txn = make_shared_ptr<MeruTxnRef>(catalog.SharedDatabase()); });
	seen.push_back(view);
}

TransactionTables::~TransactionTables() {
	for (auto &entry : lent) {
		if (entry.second.lease) {
			entry.second.lease->End();
		}
	}
}

shared_ptr<const MerutableTables> TransactionTables::Tables() {
	lock_guard<mutex> guard(lock);
	NoteCreated();
	return view;
}

void TransactionTables::NoteCreated() {
	if (!creation || !creation->Ended()) {
		return;
	}
	creation.reset();
	MerutableTableState state;
	state.id = NumericLimits<uint64_t>::Maximum(); // it has none, and no handle, before the commit
	NoteDefinition(created, created, std::move(state));
}

void TransactionTables::NoteDefinition(const string &name, const string &new_name, MerutableTableState state) {
	MeruTableSchema *schema = nullptr;
	MeruCall([&](char **err) { return meru_txn_schema(txn->Get(), new_name.c_str(), &schema, err); });
	MeruSchemaHandle handle(schema);
	state.entry = catalog.MakeEntry(MeruTable::FromEngine(*schema));
	ChangeView(name, &state);
}

void TransactionTables::ChangeView(const string &name, optional_ptr<const MerutableTableState> state) {
	auto next = make_shared_ptr<MerutableTables>(*view);
	next->version = ++last_view_version;
	next->by_name.erase(name);
	if (state) {
		next->by_name[state->entry->name] = *state;
	}
	view = std::move(next);
	seen.push_back(view);
}

shared_ptr<MeruSnapshotLease> TransactionTables::TryLease(const string &table) {
	lock_guard<mutex> guard(lock);
	auto &known = lent[table];
	auto changes = txn->Changes();
	if (known.lease && known.changes == changes) {
		return known.lease;
	}
	if (known.lease) {
		// Statements that were bound to it are bound anew.
		known.lease->End();
		known.lease.reset();
	}
	auto snapshot = MeruSnapshotRef::Acquire(*txn, table);
	if (snapshot) {
		known.lease = make_shared_ptr<MeruSnapshotLease>(std::move(snapshot));
		known.changes = changes;
	}
	return known.lease;
}

shared_ptr<MeruWriteBatch> TransactionTables::BeginWrite(ClientContext &context, const string &table) {
	auto now = context.transaction.GetActiveQuery();
	lock_guard<mutex> guard(lock);
	NoteCreated();
	// What is left of a statement that failed is not added to.
	if (query != now) {
		writes.clear();
		query = now;
	}
	// COPY FROM DATABASE writes to many tables.
	auto &write = writes[table];
	if (!write || write->Ended()) {
		write = make_shared_ptr<MeruWriteBatch>(txn, context, table);
	}
	return write;
}

shared_ptr<MeruWriteBatch> TransactionTables::BeginCreate(ClientContext &context, const MeruTable &table,
														  bool replace) {
	auto schema = table.ToEngine();
	lock_guard<mutex> guard(lock);
	NoteCreated();
	creation = make_shared_ptr<MeruWriteBatch>(txn, context, schema.Get(), replace);
	created = table.name;
	return creation;
}

bool TransactionTables::CreateTable(ClientContext &context, const MeruTable &table, OnCreateConflict on_conflict) {
	if (on_conflict == OnCreateConflict::IGNORE_ON_CONFLICT && Tables()->Find(table.name)) {
		return false;
	}
	BeginCreate(context, table, on_conflict == OnCreateConflict::REPLACE_ON_CONFLICT)->EndStatement();
	Tables();
	return true;
}

bool TransactionTables::DropTable(const string &table) {
	lock_guard<mutex> guard(lock);
	NoteCreated();
	if (!MeruCallIfFound([&](char **err) { return meru_txn_drop_table(txn->Get(), table.c_str(), err); })) {
		return false;
	}
	txn->NoteChange();
	ChangeView(table, nullptr);
	return true;
}

void TransactionTables::Alter(const string &table, const string &new_name, const MeruAlterHandle &alter) {
	lock_guard<mutex> guard(lock);
	NoteCreated();
	char *message = nullptr;
	auto status = meru_txn_alter_table(txn->Get(), table.c_str(), alter.Get(), &message);
	if (status != MeruStatus_Ok) {
		AlterTable::ThrowError(status, message);
	}
	txn->NoteChange();
	NoteDefinition(table, new_name, *view->Find(table));
}

void TransactionTables::Commit(ClientContext &context) {
	txn->Commit(context);
}

} // namespace duckdb
