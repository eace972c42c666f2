#include "catalog/merutable_transaction_manager.hpp"

#include "duckdb/common/exception.hpp"
#include "functions/database_target.hpp"

namespace duckdb {

MerutableTransactionManager::MerutableTransactionManager(AttachedDatabase &db, MerutableCatalog &catalog)
	: TransactionManager(db), catalog(catalog) {
}

Transaction &MerutableTransactionManager::StartTransaction(ClientContext &context) {
	auto transaction = make_uniq<MerutableTransaction>(*this, context, catalog);
	auto &result = *transaction;
	lock_guard<mutex> guard(lock);
	transactions[result] = std::move(transaction);
	return result;
}

unique_ptr<MerutableTransaction> MerutableTransactionManager::Take(Transaction &transaction) {
	lock_guard<mutex> guard(lock);
	auto entry = transactions.find(transaction);
	if (entry == transactions.end()) {
		return nullptr;
	}
	auto result = std::move(entry->second);
	transactions.erase(entry);
	return result;
}

ErrorData MerutableTransactionManager::CommitTransaction(ClientContext &context, Transaction &transaction) {
	auto ended = Take(transaction);
	if (!ended) {
		return ErrorData();
	}
	try {
		ended->Commit(context);
		return ErrorData();
	} catch (std::exception &ex) {
		// DuckDB does not roll back what failed to commit.
		ended->Rollback();
		return ErrorData(ex);
	}
}

void MerutableTransactionManager::RollbackTransaction(Transaction &transaction) {
	auto ended = Take(transaction);
	if (ended) {
		ended->Rollback();
	}
}

void MerutableTransactionManager::Checkpoint(ClientContext &context, bool force) {
	catalog.RequireWritable();
	MeruProgress progress;
	MeruWatcher watcher(context, progress);
	auto &database = catalog.Database();
	MeruCall([&](char **err) { return meru_flush_watched(database.Get(), watcher.Get(), err); });
	if (force) {
		CompactTables(database, progress, watcher.Get());
	}
}

} // namespace duckdb
