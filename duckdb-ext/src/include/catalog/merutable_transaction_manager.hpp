//! Begins and ends the transactions of an attached database.

#pragma once

#include "catalog/merutable_transaction.hpp"
#include "duckdb/common/reference_map.hpp"
#include "duckdb/transaction/transaction_manager.hpp"

namespace duckdb {

class MerutableTransactionManager : public TransactionManager {
  public:
	MerutableTransactionManager(AttachedDatabase &db, MerutableCatalog &catalog);

	Transaction &StartTransaction(ClientContext &context) override;
	ErrorData CommitTransaction(ClientContext &context, Transaction &transaction) override;
	void RollbackTransaction(Transaction &transaction) override;
	//! Writes the rows in memory to data files.
	void Checkpoint(ClientContext &context, bool force) override;

  private:
	unique_ptr<MerutableTransaction> Take(Transaction &transaction);

	MerutableCatalog &catalog;
	mutex lock;
	reference_map_t<Transaction, unique_ptr<MerutableTransaction>> transactions;
};

} // namespace duckdb
