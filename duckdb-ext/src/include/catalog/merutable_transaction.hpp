//! What one transaction of DuckDB sees of an attached database, and what it writes to it.

#pragma once

#include "catalog/historic_tables.hpp"
#include "catalog/merutable_catalog.hpp"
#include "duckdb/common/enums/on_create_conflict.hpp"
#include "duckdb/transaction/transaction.hpp"

namespace duckdb {

//! Sees the state as of its first read until it ends. What it writes becomes visible, all at once, when it commits.
//! Transactions of several statements (BEGIN … COMMIT) cannot write yet. Used by all threads of a query.
class MerutableTransaction : public Transaction {
  public:
	MerutableTransaction(TransactionManager &manager, ClientContext &context, MerutableCatalog &catalog);
	~MerutableTransaction() override;

	static MerutableTransaction &Get(ClientContext &context, Catalog &catalog);

	//! Throws in a transaction of several statements.
	void SetReadWrite() override;

	//! The table that this transaction sees. The entry lives as long as the transaction at least.
	MerutableTableState Table();
	//! The transaction's snapshot, on loan until the transaction is over. Throws where it is not of that table.
	shared_ptr<MeruSnapshotLease> Lease(const MeruTable &table);
	//! The same, NULL where the table was dropped or replaced meanwhile.
	shared_ptr<MeruSnapshotLease> TryLease(const MeruTable &table);

	//! The change that is committed with the transaction. Throws where the table is not the one that was planned with;
	//! a later replacement makes the commit fail.
	shared_ptr<MeruWriteBatch> BeginWrite(ClientContext &context, const MeruTable &table);
	//! The same for a change that depends on what the transaction sees: of two that change one row the later one fails.
	shared_ptr<MeruWriteBatch> BeginChange(ClientContext &context, const MeruTable &table);
	//! The change that creates the table, with rows, when the transaction commits. NULL where there is one already and
	//! on_conflict says that this is fine.
	shared_ptr<MeruWriteBatch> BeginCreate(ClientContext &context, const MeruTable &table,
										   OnCreateConflict on_conflict);
	//! Creates the table at once; it is dropped again if the transaction fails. Returns false where there is one
	//! already, which is only an error if on_conflict says so.
	bool CreateTable(const MeruTable &table, OnCreateConflict on_conflict);
	//! Drops the table at once. False: there was none.
	bool DropTable();

	//! The older states of tables that the transaction reads.
	HistoricTables &Historic() {
		return historic;
	}

	void Commit();
	void Rollback() noexcept;

  private:
	//! Gives back what lasts no longer than the transaction.
	void End() noexcept;

	MerutableCatalog &catalog;
	bool several_statements;
	mutex lock;
	bool looked = false;
	shared_ptr<MeruSnapshotLease> lease;
	//! The table of the snapshot.
	MerutableTableState pinned;
	//! What was given out: DuckDB keeps plain references to entries.
	vector<shared_ptr<MerutableTableEntry>> entries;
	shared_ptr<MeruWriteBatch> write;
	HistoricTables historic;
	//! To be dropped again unless the transaction commits.
	bool created_table = false;
};

} // namespace duckdb
