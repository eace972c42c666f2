#include "catalog/merutable_transaction.hpp"

#include "catalog/alter_table.hpp"
#include "catalog/merutable_storage.hpp"
#include "catalog/merutable_table_entry.hpp"
#include "duckdb/common/exception.hpp"
#include "duckdb/common/exception/transaction_exception.hpp"
#include "duckdb/common/string_util.hpp"
#include "duckdb/main/attached_database.hpp"
#include "duckdb/main/client_context.hpp"
#include "duckdb/transaction/meta_transaction.hpp"

namespace duckdb {

namespace {

[[noreturn]] void ThrowChanged(const MeruTable &table) {
	throw TransactionException("Table \"%s\" was dropped, replaced or altered while the statement was planned",
							   table.name);
}

} // namespace

MerutableTransaction::MerutableTransaction(TransactionManager &manager, ClientContext &context,
										   MerutableCatalog &catalog)
	: Transaction(manager, context), catalog(catalog), several_statements(!context.transaction.IsAutoCommit()) {
}

MerutableTransaction::~MerutableTransaction() {
	End();
}

MerutableTransaction &MerutableTransaction::Get(ClientContext &context, Catalog &catalog) {
	// A name stands for one database in a transaction. DuckDB takes a second one for a fault of its own, but another
	// connection may have detached the first and attached the second meanwhile.
	auto used = MetaTransaction::Get(context).GetReferencedDatabase(catalog.GetName());
	if (used && !RefersToSameObject(*used, catalog.GetAttached())) {
		throw TransactionException("Database \"%s\" was detached, and another one attached under its name, while a "
								   "statement used it",
								   catalog.GetName());
	}
	return Transaction::Get(context, catalog).Cast<MerutableTransaction>();
}

optional_ptr<MerutableTransaction> MerutableTransaction::Find(ClientContext &context, const string &path) {
	if (!context.transaction.HasActiveTransaction()) {
		return nullptr;
	}
	auto &meta = MetaTransaction::Get(context);
	for (auto &database : meta.OpenedTransactions()) {
		auto &catalog = database.get().GetCatalog();
		if (catalog.GetCatalogType() != MerutableStorage::TYPE || catalog.GetDBPath() != path) {
			continue;
		}
		auto &found = meta.TryGetTransaction(database)->Cast<MerutableTransaction>();
		if (found.several_statements) {
			return &found;
		}
	}
	return nullptr;
}

optional_ptr<TransactionTables> MerutableTransaction::Several() {
	if (!several_statements || catalog.GetAttached().IsReadOnly()) {
		return nullptr;
	}
	lock_guard<mutex> guard(lock);
	if (!several) {
		several = make_uniq<TransactionTables>(catalog);
	}
	return several.get();
}

shared_ptr<const MerutableTables> MerutableTransaction::Tables() {
	if (auto tables = Several()) {
		return tables->Tables();
	}
	lock_guard<mutex> guard(lock);
	if (pinned) {
		return pinned;
	}
	if (!looked && catalog.GetAttached().IsReadOnly()) {
		auto client = context.lock();
		if (!client) {
			throw TransactionException("The connection of this transaction is closed");
		}
		catalog.Database().Refresh(*client);
	}
	looked = true;
	auto result = catalog.CurrentTables();
	if (seen.empty() || seen.back() != result) {
		seen.push_back(result);
	}
	return result;
}

void MerutableTransaction::Pin() {
	pinned = catalog.TablesDuring([&]() { snapshots = make_uniq<MeruSnapshotSetRef>(catalog.Database()); });
	seen.push_back(pinned);
}

shared_ptr<MeruSnapshotLease> MerutableTransaction::TryLease(const MeruTable &table) {
	auto result = TryLease(table.name);
	return result && result->Get()->Table().Equals(table) ? result : nullptr;
}

shared_ptr<MeruSnapshotLease> MerutableTransaction::TryLease(const string &name) {
	if (auto tables = Several()) {
		return tables->TryLease(name);
	}
	lock_guard<mutex> guard(lock);
	if (!snapshots) {
		Pin();
	}
	auto found = pinned->Find(name);
	if (!found) {
		return nullptr;
	}
	auto &lease = leases[found->id];
	if (!lease) {
		auto snapshot = snapshots->Of(found->id, found->database);
		if (!snapshot) {
			return nullptr;
		}
		lease = make_shared_ptr<MeruSnapshotLease>(std::move(snapshot));
	}
	return lease;
}

shared_ptr<MeruSnapshotLease> MerutableTransaction::Lease(const MeruTable &table) {
	auto result = TryLease(table);
	if (!result) {
		ThrowChanged(table);
	}
	return result;
}

shared_ptr<MeruWriteBatch> MerutableTransaction::BeginWrite(ClientContext &context, const MeruTable &table) {
	catalog.RequireWritable();
	if (auto tables = Several()) {
		Lease(table); // it is the one that was planned with
		return tables->BeginWrite(context, table.name);
	}
	lock_guard<mutex> guard(lock);
	auto find = [&]() {
		auto found = catalog.CurrentTables()->Find(table.name);
		if (!found || !found->entry->Table().Equals(table)) {
			ThrowChanged(table);
		}
		return *found;
	};
	if (!write) {
		write = make_shared_ptr<MeruWriteBatch>(find().database, context);
		written = table.name;
	} else if (!StringUtil::CIEquals(written, table.name)) {
		throw TransactionException("A statement that is a transaction of its own cannot write to the tables \"%s\" and "
								   "\"%s\": run it between BEGIN and COMMIT",
								   written, table.name);
	}
	// Looked at once the change has begun: the engine refuses to commit one that began before its table was replaced.
	find();
	return write;
}

shared_ptr<MeruWriteBatch> MerutableTransaction::BeginChange(ClientContext &context, const MeruTable &table) {
	auto result = BeginWrite(context, table);
	if (several_statements) {
		return result; // the transaction checks all that it has written
	}
	result->SetSnapshot(Lease(table)->Get()->Get());
	return result;
}

shared_ptr<MeruWriteBatch> MerutableTransaction::BeginCreate(ClientContext &context, const MeruTable &table,
															 OnCreateConflict on_conflict) {
	catalog.RequireWritable();
	auto replace = on_conflict == OnCreateConflict::REPLACE_ON_CONFLICT;
	if (on_conflict == OnCreateConflict::IGNORE_ON_CONFLICT &&
		(several_statements ? Tables() : catalog.CurrentTables())->Find(table.name)) {
		return nullptr;
	}
	if (auto tables = Several()) {
		return tables->BeginCreate(context, table, replace);
	}
	auto schema = table.ToEngine();
	lock_guard<mutex> guard(lock);
	write = make_shared_ptr<MeruWriteBatch>(catalog.SharedDatabase(), context, schema.Get(), replace);
	written = table.name;
	return write;
}

bool MerutableTransaction::CreateTable(ClientContext &context, const MeruTable &table, OnCreateConflict on_conflict) {
	catalog.RequireWritable();
	if (auto tables = Several()) {
		return tables->CreateTable(context, table, on_conflict);
	}
	auto schema = table.ToEngine();
	auto database = catalog.Database().Get();
	lock_guard<mutex> guard(lock);
	while (true) {
		// The engine checks the schema first: a table is not replaced by one that cannot be.
		char *message = nullptr;
		auto status = meru_create_table(database, schema.Get(), &message);
		if (status == MeruStatus_Ok) {
			created_table = table.name;
			return true;
		}
		if (status != MeruStatus_ErrAlreadyExists || on_conflict == OnCreateConflict::ERROR_ON_CONFLICT) {
			ThrowMeruError(status, message);
		}
		meru_free_string(message);
		if (on_conflict == OnCreateConflict::IGNORE_ON_CONFLICT) {
			return false;
		}
		// Others may create one in between, or drop this one: then it is their turn to be replaced.
		if (auto old = catalog.Database().OpenTable(table.name)) {
			MeruCallIfFound([&](char **err) { return meru_drop_table(old->Get(), err); });
		}
	}
}

bool MerutableTransaction::DropTable(const string &name) {
	catalog.RequireWritable();
	if (auto tables = Several()) {
		return tables->DropTable(name);
	}
	auto table = catalog.Database().OpenTable(name);
	return table && MeruCallIfFound([&](char **err) { return meru_drop_table(table->Get(), err); });
}

void MerutableTransaction::Alter(const string &name, const string &new_name, optional_ptr<MeruDatabase> table,
								 const MeruAlterHandle &alter) {
	catalog.RequireWritable();
	if (auto tables = Several()) {
		return tables->Alter(name, new_name, alter);
	}
	char *message = nullptr;
	auto status = meru_alter_table(table->Get(), alter.Get(), &message);
	if (status != MeruStatus_Ok) {
		AlterTable::ThrowError(status, message);
	}
}

void MerutableTransaction::Commit(ClientContext &context) {
	if (several) {
		several->Commit(context);
	} else if (write) {
		write->Commit();
	}
	End();
}

void MerutableTransaction::Rollback() noexcept {
	write.reset();
	if (!created_table.empty()) {
		DropIfEmpty(catalog.GetDatabase(), catalog.Database(), created_table);
	}
	End();
}

void MerutableTransaction::End() noexcept {
	write.reset();
	several.reset();
	created_table.clear();
	for (auto &lease : leases) {
		if (lease.second) {
			lease.second->End();
		}
	}
	snapshots.reset();
	historic.End();
}

} // namespace duckdb
