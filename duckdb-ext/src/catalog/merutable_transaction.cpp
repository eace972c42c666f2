#include "catalog/merutable_transaction.hpp"

#include "catalog/merutable_table_entry.hpp"
#include "duckdb/common/exception/catalog_exception.hpp"
#include "duckdb/common/exception/transaction_exception.hpp"
#include "duckdb/main/attached_database.hpp"
#include "duckdb/main/client_context.hpp"

namespace duckdb {

MerutableTransaction::MerutableTransaction(TransactionManager &manager, ClientContext &context,
										   MerutableCatalog &catalog)
	: Transaction(manager, context), catalog(catalog), several_statements(!context.transaction.IsAutoCommit()) {
}

MerutableTransaction::~MerutableTransaction() {
	End();
}

MerutableTransaction &MerutableTransaction::Get(ClientContext &context, Catalog &catalog) {
	return Transaction::Get(context, catalog).Cast<MerutableTransaction>();
}

void MerutableTransaction::SetReadWrite() {
	if (several_statements) {
		throw TransactionException("Writing to merutable database \"%s\" is not supported inside a transaction of "
								   "several statements (BEGIN … COMMIT): each statement is a transaction of its own",
								   catalog.GetName());
	}
	Transaction::SetReadWrite();
}

MerutableTableState MerutableTransaction::Table() {
	lock_guard<mutex> guard(lock);
	if (pinned.entry) {
		return pinned;
	}
	if (!looked && catalog.GetAttached().IsReadOnly()) {
		MeruCall([&](char **err) { return meru_refresh(catalog.Database().Get(), err); });
	}
	looked = true;
	auto result = catalog.CurrentTable();
	if (result.entry && (entries.empty() || entries.back() != result.entry)) {
		entries.push_back(result.entry);
	}
	return result;
}

shared_ptr<MeruSnapshotLease> MerutableTransaction::Lease(const MeruTable &table) {
	lock_guard<mutex> guard(lock);
	if (!lease) {
		auto snapshot = MeruSnapshotRef::Acquire(catalog.SharedDatabase());
		if (!snapshot) {
			throw CatalogException("Table \"%s\" does not exist any more: it was dropped meanwhile", table.name);
		}
		pinned = catalog.TableFor(snapshot->Table());
		entries.push_back(pinned.entry);
		lease = make_shared_ptr<MeruSnapshotLease>(std::move(snapshot));
	}
	if (!pinned.entry->Table().Equals(table)) {
		throw TransactionException("Table \"%s\" was changed meanwhile: run the statement again", table.name);
	}
	return lease;
}

shared_ptr<MeruWriteBatch> MerutableTransaction::BeginWrite(ClientContext &context) {
	catalog.RequireWritable();
	lock_guard<mutex> guard(lock);
	if (!write) {
		write = make_shared_ptr<MeruWriteBatch>(catalog.SharedDatabase(), context);
	}
	return write;
}

void MerutableTransaction::CreateTable(const MeruTable &table, bool replace) {
	catalog.RequireWritable();
	auto schema = table.ToEngine();
	auto &database = catalog.Database();
	lock_guard<mutex> guard(lock);
	char *message = nullptr;
	auto status = meru_create_table(database.Get(), schema.Get(), &message);
	if (status == MeruStatus_ErrAlreadyExists && replace) {
		// The schema is good, as the engine checks that first: the old table is not dropped for nothing.
		meru_free_string(message);
		MeruCall([&](char **err) { return meru_drop_table(database.Get(), err); });
		MeruCall([&](char **err) { return meru_create_table(database.Get(), schema.Get(), err); });
	} else if (status != MeruStatus_Ok) {
		ThrowMeruError(status, message);
	}
	created_table = true;
}

void MerutableTransaction::DropTable() {
	catalog.RequireWritable();
	MeruCall([&](char **err) { return meru_drop_table(catalog.Database().Get(), err); });
}

void MerutableTransaction::Commit() {
	if (write) {
		write->Commit();
	}
	End();
}

void MerutableTransaction::Rollback() noexcept {
	write.reset();
	if (created_table) {
		DropIfEmpty(catalog.GetDatabase(), catalog.SharedDatabase());
	}
	End();
}

void MerutableTransaction::End() noexcept {
	write.reset();
	created_table = false;
	if (lease) {
		lease->End();
	}
}

} // namespace duckdb
