//! The snapshots of databases that a statement names by path: one per path, so that a statement sees one state.

#pragma once

#include "common/table_version.hpp"
#include "duckdb/common/named_parameter_map.hpp"
#include "duckdb/common/optional_ptr.hpp"
#include "duckdb/main/client_context_state.hpp"

namespace duckdb {

class StatementSnapshots : public ClientContextState {
  public:
	//! The lease for a table of a path, acquired at its first use in this statement; those of all tables are of one
	//! moment. Without a name it is the table in the root of the directory, or the only one that there is. Throws where
	//! there is none.
	static shared_ptr<MeruSnapshotLease> Get(ClientContext &context, const string &path, const string &table = "");
	//! The same for an older state of the table, if version is not NULL.
	static shared_ptr<MeruSnapshotLease> Get(ClientContext &context, const string &path, const string &table,
											 optional_ptr<const MeruTableVersion> version);
	//! The parameter that names a table, under both its names: table is a word of SQL, and needs quotes.
	static void AddTableParameter(named_parameter_type_map_t &parameters);
	//! Its value, empty where it was not given; function is for errors.
	static string TableParameter(const string &function, const named_parameter_map_t &parameters);

	//! The table of a name, or the one that is meant where none is given; path is for errors.
	static const MeruTableInfo &FindTable(const MeruTableListRef &tables, const string &path, const string &name);

	void QueryEnd() override;
	void TransactionCommit(MetaTransaction &transaction, ClientContext &context) override;
	void TransactionRollback(MetaTransaction &transaction, ClientContext &context) override;

  private:
	//! A database with what all its tables showed at one moment.
	struct Database {
		shared_ptr<MeruDatabase> database;
		unique_ptr<MeruSnapshotSetRef> snapshots;
	};
	//! NULL where there is no database at the path. Under the lock.
	optional_ptr<Database> Open(ClientContext &context, const string &resolved);

	mutex lock;
	unordered_map<string, Database> databases;
	unordered_map<string, shared_ptr<MeruSnapshotLease>> leases;
};

} // namespace duckdb
