//! What one transaction of DuckDB sees of an attached database, and what it writes to it.

#pragma once

#include "catalog/historic_tables.hpp"
#include "catalog/merutable_catalog.hpp"
#include "catalog/transaction_tables.hpp"
#include "duckdb/common/enums/on_create_conflict.hpp"
#include "duckdb/transaction/transaction.hpp"

namespace duckdb {
class MeruAlterHandle;

//! Sees the state as of its first look until it ends. What it writes becomes visible, all at once, when it commits: a
//! statement of its own through one change of the engine, several statements (BEGIN … COMMIT) through a transaction of
//! the engine (TransactionTables). Used by all threads of a query.
class MerutableTransaction : public Transaction {
  public:
	MerutableTransaction(TransactionManager &manager, ClientContext &context, MerutableCatalog &catalog);
	~MerutableTransaction() override;

	static MerutableTransaction &Get(ClientContext &context, Catalog &catalog);

	//! The transaction of several statements that is open in this connection on the database in a directory, if any.
	//! The path is the engine's.
	static optional_ptr<MerutableTransaction> Find(ClientContext &context, const string &path);

	//! The tables that this transaction sees. The entries live as long as the transaction at least.
	shared_ptr<const MerutableTables> Tables();
	//! The transaction's snapshot of a table, on loan until the transaction is over; those of all tables are of one
	//! moment. Throws where the table is another one there.
	shared_ptr<MeruSnapshotLease> Lease(const MeruTable &table);
	//! The same, NULL where the table was dropped or replaced meanwhile.
	shared_ptr<MeruSnapshotLease> TryLease(const MeruTable &table);
	//! The same for whatever table of that name the transaction sees; NULL for none.
	shared_ptr<MeruSnapshotLease> TryLease(const string &name);

	//! The statement's change. Throws where the table is not the one that was planned with;
	//! a later replacement makes the commit fail.
	shared_ptr<MeruWriteBatch> BeginWrite(ClientContext &context, const MeruTable &table);
	//! The same for a change that depends on what the transaction sees: of two that change one row the later one fails.
	shared_ptr<MeruWriteBatch> BeginChange(ClientContext &context, const MeruTable &table);
	//! The change that creates the table, with rows, when the transaction commits. NULL where there is one already and
	//! on_conflict says that this is fine.
	shared_ptr<MeruWriteBatch> BeginCreate(ClientContext &context, const MeruTable &table,
										   OnCreateConflict on_conflict);
	//! Creates the table at once; it is dropped again if the transaction fails. In a transaction of several statements
	//! it is in that alone until the commit. Returns false where there is one already, which is only an error if
	//! on_conflict says so.
	bool CreateTable(ClientContext &context, const MeruTable &table, OnCreateConflict on_conflict);
	//! Drops a table at once, or with a transaction of several statements. False: there was none.
	bool DropTable(const string &name);
	//! Changes the schema of a table, which a handle is of, at once, or with a transaction of several statements;
	//! new_name is the table's then.
	void Alter(const string &name, const string &new_name, optional_ptr<MeruDatabase> table,
			   const MeruAlterHandle &alter);

	//! The older states of tables that the transaction reads.
	HistoricTables &Historic() {
		return historic;
	}

	void Commit(ClientContext &context);
	void Rollback() noexcept;

  private:
	//! NULL in a transaction of one statement, and where nothing can be written; begun at the first look.
	optional_ptr<TransactionTables> Several();
	//! Takes the snapshots of all tables, unless that was done. Under the lock.
	void Pin();
	//! Gives back what lasts no longer than the transaction.
	void End() noexcept;

	MerutableCatalog &catalog;
	bool several_statements;
	mutex lock;
	bool looked = false;
	//! Once something was read: the tables and their snapshots, of one moment, and what was lent of them, by id.
	shared_ptr<const MerutableTables> pinned;
	unique_ptr<MeruSnapshotSetRef> snapshots;
	unordered_map<uint64_t, shared_ptr<MeruSnapshotLease>> leases;
	//! What was given out: DuckDB keeps plain references to entries.
	vector<shared_ptr<const MerutableTables>> seen;
	unique_ptr<TransactionTables> several;
	shared_ptr<MeruWriteBatch> write;
	//! Keeps the table's handle as long as write.
	string written;
	HistoricTables historic;
	//! To be dropped again unless the transaction commits.
	string created_table;
};

} // namespace duckdb
