//! What a transaction of several statements sees of an attached database, and what it has changed.

#pragma once

#include "catalog/merutable_catalog.hpp"
#include "duckdb/common/enums/on_create_conflict.hpp"

namespace duckdb {
class MeruAlterHandle;

//! The database as of the transaction's first look, with what it has written and defined itself. Each statement's
//! change becomes a part of it when the statement ends; before that it sees nothing of it. Used by all threads of a
//! query.
class TransactionTables {
  public:
	//! Pins the newest state.
	explicit TransactionTables(MerutableCatalog &catalog);
	~TransactionTables();

	//! The tables that it sees now. Entries that were handed out live as long as it does.
	shared_ptr<const MerutableTables> Tables();
	//! What it sees of a table now, on loan until it is over or has changed something. NULL where there is no such
	//! table.
	shared_ptr<MeruSnapshotLease> TryLease(const string &table);
	//! The change of the statement that runs.
	shared_ptr<MeruWriteBatch> BeginWrite(ClientContext &context, const string &table);
	//! The change of a statement that makes a table with its rows.
	shared_ptr<MeruWriteBatch> BeginCreate(ClientContext &context, const MeruTable &table, bool replace);
	//! False: there is one already, and on_conflict says that this is fine.
	bool CreateTable(ClientContext &context, const MeruTable &table, OnCreateConflict on_conflict);
	//! False: there is none.
	bool DropTable(const string &table);
	//! Changes the schema of a table that it sees; new_name is the table's then.
	void Alter(const string &table, const string &new_name, const MeruAlterHandle &alter);
	void Commit(ClientContext &context);

  private:
	struct Lent {
		shared_ptr<MeruSnapshotLease> lease;
		//! The changes that it shows.
		idx_t changes = 0;
	};

	//! All under the lock.
	//! Takes note of a table that a statement has made.
	void NoteCreated();
	//! Gives a table an entry for the definition, and the name, that it has now.
	void NoteDefinition(const string &name, const string &new_name, MerutableTableState state);
	//! Replaces the view by one with another table for a name; NULL for none.
	void ChangeView(const string &name, optional_ptr<const MerutableTableState> state);

	MerutableCatalog &catalog;
	shared_ptr<MeruTxnRef> txn;
	mutex lock;
	shared_ptr<const MerutableTables> view;
	//! What was given out: DuckDB keeps plain references to entries.
	vector<shared_ptr<const MerutableTables>> seen;
	case_insensitive_map_t<Lent> lent;
	//! The changes of the statement that runs, or ran last, by table, and the query that they belong to.
	case_insensitive_map_t<shared_ptr<MeruWriteBatch>> writes;
	idx_t query = 0;
	//! The change that makes a table, until it was taken note of, and the table's name.
	shared_ptr<MeruWriteBatch> creation;
	string created;
};

} // namespace duckdb
