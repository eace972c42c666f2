//! Owners of the engine's objects: each frees what it holds exactly once.

#pragma once

#include "duckdb/common/common.hpp"
#include "duckdb/common/shared_ptr.hpp"
#include "duckdb/common/atomic.hpp"
#include "duckdb/common/mutex.hpp"
#include "duckdb/common/unordered_set.hpp"
#include "common/location.hpp"
#include "common/meru_status.hpp"

namespace duckdb {
class ClientContext;

class MeruOpenSettings;

//! An open database, in a directory or an object store. Used by any number of threads.
class MeruDatabase {
  public:
	//! Takes the handle.
	explicit MeruDatabase(MeruHandle *handle);
	~MeruDatabase();
	MeruDatabase(const MeruDatabase &) = delete;
	MeruDatabase &operator=(const MeruDatabase &) = delete;

	//! The client can stop it where it waits for an object store.
	static shared_ptr<MeruDatabase> Open(ClientContext &context, const string &path, const MeruOpenSettings &settings);
	//! For reading: this process's writer if there is one, else a read-only engine that was refreshed just now. NULL
	//! where there is no database.
	static shared_ptr<MeruDatabase> OpenReader(ClientContext &context, const string &path);
	//! The same database with another of its tables as the one that calls are about, by name; NULL where there is none.
	shared_ptr<MeruDatabase> OpenTable(const string &name) const;
	shared_ptr<MeruDatabase> OpenTable(uint64_t id) const;

	MeruHandle *Get() const {
		return handle;
	}
	string Path() const;
	//! Of a read-only one: what was committed since. The client can stop it.
	void Refresh(ClientContext &context);
	//! Flushes, makes durable and seals; freed later by the destructor. Throws what went wrong.
	void Close();

  private:
	MeruHandle *handle;
	atomic<bool> closed{false};
};

//! The tables of a database, see meru_tables().
class MeruTableListRef {
  public:
	explicit MeruTableListRef(const MeruDatabase &database);
	~MeruTableListRef();
	MeruTableListRef(const MeruTableListRef &) = delete;
	MeruTableListRef &operator=(const MeruTableListRef &) = delete;

	const MeruTableInfo *begin() const { // NOLINT: for range-based loops
		return list->tables;
	}
	const MeruTableInfo *end() const { // NOLINT
		return list->tables + list->count;
	}
	idx_t Count() const {
		return list->count;
	}

  private:
	MeruTableList *list = nullptr;
};

//! Options for opening.
class MeruOpenSettings {
  public:
	//! With a default for the memory budget: a quarter of DuckDB's own limit, from 64 MiB to 1 GiB.
	explicit MeruOpenSettings(ClientContext &context);
	~MeruOpenSettings();
	MeruOpenSettings(const MeruOpenSettings &) = delete;
	MeruOpenSettings &operator=(const MeruOpenSettings &) = delete;

	void Set(const string &key, const string &value);
	//! What DuckDB's secrets say of a URL, but for what was set; nothing for a path. For one URL: a database in an
	//! object store has no mirror.
	void AddSecrets(ClientContext &context, const string &url);
	const MeruOptions *Get() const {
		return options;
	}
	//! Opens, or returns what meru_open_with() says of it. The client can stop it.
	int Open(ClientContext &context, const string &path, MeruHandle **handle, char **err) const;

  private:
	MeruOptions *options;
	unordered_set<string> given;
};

//! Rows made ready for a change, see MeruBlock.
class MeruBlockRef {
  public:
	explicit MeruBlockRef(MeruBlock *block) : block(block) {
	}
	~MeruBlockRef() {
		meru_block_free(block);
	}
	MeruBlockRef(MeruBlockRef &&other) noexcept : block(other.Release()) {
	}
	MeruBlockRef(const MeruBlockRef &) = delete;
	MeruBlockRef &operator=(const MeruBlockRef &) = delete;

	//! Memory, in bytes.
	idx_t Size() const {
		return meru_block_bytes(block);
	}
	//! Gives the block to the caller.
	MeruBlock *Release() {
		auto result = block;
		block = nullptr;
		return result;
	}

  private:
	MeruBlock *block;
};

//! A transaction of several statements, see MeruTxn. Rolled back when it goes without a commit. For any number of
//! threads.
class MeruTxnRef {
  public:
	explicit MeruTxnRef(shared_ptr<MeruDatabase> database);
	~MeruTxnRef();
	MeruTxnRef(const MeruTxnRef &) = delete;
	MeruTxnRef &operator=(const MeruTxnRef &) = delete;

	MeruTxn *Get() const {
		return txn;
	}
	const shared_ptr<MeruDatabase> &SharedDatabase() const {
		return database;
	}
	//! A number that grows with each statement that has become a part of the transaction.
	idx_t Changes() const {
		return changes;
	}
	void NoteChange() {
		changes++;
	}
	//! The client can stop it.
	void Commit(ClientContext &context);

  private:
	shared_ptr<MeruDatabase> database;
	MeruTxn *txn = nullptr;
	atomic<idx_t> changes{0};
};

//! One atomic change, see MeruWrite. For any number of threads; asks the client whether to go on.
class MeruWriteBatch {
  public:
	MeruWriteBatch(shared_ptr<MeruDatabase> database, ClientContext &context);
	//! A change that creates its table, see meru_write_begin_table().
	MeruWriteBatch(shared_ptr<MeruDatabase> database, ClientContext &context, const MeruTableSchema *schema,
				   bool replace);
	//! A statement of a transaction of several.
	MeruWriteBatch(shared_ptr<MeruTxnRef> txn, ClientContext &context, const string &table);
	//! One that makes a table, with rows.
	MeruWriteBatch(shared_ptr<MeruTxnRef> txn, ClientContext &context, const MeruTableSchema *schema, bool replace);
	~MeruWriteBatch();
	MeruWriteBatch(const MeruWriteBatch &) = delete;
	MeruWriteBatch &operator=(const MeruWriteBatch &) = delete;

	//! Makes Commit() fail where a row of a key that is written was changed after the snapshot.
	void SetSnapshot(const MeruSnapshot *snapshot);
	//! Both take the array, also when they throw.
	void Put(ArrowArray &rows, const ArrowSchema &schema);
	void Delete(ArrowArray &keys, const ArrowSchema &schema);
	//! The same in two steps, so that threads wait for each other only in the second one, which is short.
	MeruBlockRef PreparePut(ArrowArray &rows, const ArrowSchema &schema);
	MeruBlockRef PrepareDelete(ArrowArray &keys, const ArrowSchema &schema);
	void Append(MeruBlockRef block);
	//! Makes everything durable and visible. The client can stop it until then.
	void Commit();
	//! After the last row of the statement: in a transaction of several statements, what it has changed becomes a part
	//! of that; otherwise there is nothing to do before the commit. A second call does nothing.
	void EndStatement();
	//! Whether EndStatement() has made it a part of a transaction, so that there is nothing more to add.
	bool Ended() const {
		return ended;
	}

	//! For the engine: whether the client wants it to stop. Takes a ClientContext.
	static int Interrupted(void *context);

  private:
	shared_ptr<MeruDatabase> database;
	//! NULL: the change is a transaction of its own.
	shared_ptr<MeruTxnRef> txn;
	atomic<bool> ended{false};
	//! Held by calls of which the engine takes one at a time.
	mutex lock;
	MeruWrite *write = nullptr;
};

} // namespace duckdb
