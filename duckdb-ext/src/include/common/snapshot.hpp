//! What a statement reads: a snapshot of the engine, and how long bound statements may keep it.

#pragma once

#include "common/meru_handle.hpp"
#include "common/table_schema.hpp"
#include "duckdb/common/mutex.hpp"

namespace duckdb {

//! An acquired snapshot with its schema. Immutable; for any number of threads. Keeps the database open.
class MeruSnapshotRef {
  public:
	//! NULL where the database has no table.
	static shared_ptr<MeruSnapshotRef> Acquire(shared_ptr<MeruDatabase> database);
	//! What a transaction sees of a table, NULL where there is none of that name.
	static shared_ptr<MeruSnapshotRef> Acquire(const MeruTxnRef &txn, const string &table);

	MeruSnapshotRef(shared_ptr<MeruDatabase> database, MeruSnapshot *snapshot);
	~MeruSnapshotRef();
	MeruSnapshotRef(const MeruSnapshotRef &) = delete;
	MeruSnapshotRef &operator=(const MeruSnapshotRef &) = delete;

	const MeruSnapshot *Get() const {
		return snapshot;
	}
	const MeruSnapshotInfo &Info() const {
		return info;
	}
	const MeruTable &Table() const {
		return table;
	}
	const MeruTableSchema *Schema() const {
		return schema->Get();
	}
	MeruDatabase &Database() const {
		return *database;
	}
	const shared_ptr<MeruDatabase> &SharedDatabase() const {
		return database;
	}

  private:
	shared_ptr<MeruDatabase> database;
	MeruSnapshot *snapshot;
	MeruSnapshotInfo info;
	unique_ptr<MeruSchemaHandle> schema;
	MeruTable table;
};

//! What a reader sees of all tables of a database at one moment.
class MeruSnapshotSetRef {
  public:
	explicit MeruSnapshotSetRef(const MeruDatabase &database);
	~MeruSnapshotSetRef();
	MeruSnapshotSetRef(const MeruSnapshotSetRef &) = delete;
	MeruSnapshotSetRef &operator=(const MeruSnapshotSetRef &) = delete;

	//! The snapshot of a table, to which database is a handle. NULL where the set has none.
	shared_ptr<MeruSnapshotRef> Of(uint64_t id, shared_ptr<MeruDatabase> database) const;

  private:
	MeruSnapshotSet *set = nullptr;
};

//! A snapshot on loan to bound statements until the statement or transaction is over. A prepared statement that lies
//! idle would otherwise pin memory and files for as long as it exists; it is bound anew for each execution anyway.
class MeruSnapshotLease {
  public:
	explicit MeruSnapshotLease(shared_ptr<MeruSnapshotRef> snapshot) : snapshot(std::move(snapshot)) {
	}

	//! Throws after End().
	shared_ptr<MeruSnapshotRef> Get() const;
	//! A lease on a part of this snapshot, which ends when this one does.
	shared_ptr<MeruSnapshotLease> Sublet(shared_ptr<MeruSnapshotRef> part);
	void End();

  private:
	mutable mutex lock;
	shared_ptr<MeruSnapshotRef> snapshot;
	vector<weak_ptr<MeruSnapshotLease>> parts;
};

} // namespace duckdb
