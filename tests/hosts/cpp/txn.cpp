// Transactions of several statements: what they see, conflicts, endings, and wrong use.
#include "kit.hpp"

namespace {

MeruTxn *Begin(MeruHandle *db) {
	MeruTxn *txn = nullptr;
	OK(meru_txn_begin(db, &txn, &err));
	return txn;
}

// A statement that puts rows first..first+n-1.
void PutRows(MeruTxn *txn, const ArrowSchema &schema, int64_t first, int64_t n) {
	MeruWrite *w = nullptr;
	OK(meru_txn_write(txn, nullptr, &w, &err));
	ArrowArray rows{};
	Export(SimpleRows(first, n), &rows);
	OK(meru_write_put_arrow(w, &rows, &schema, &err));
	uint64_t seq = 77;
	OK(meru_write_commit(w, &seq, &err));
	CHECK(seq == 0, "a statement of a transaction has sequence number %llu", (unsigned long long)seq);
	meru_write_free(w);
}

int64_t Count(MeruTxn *txn, const char *table = nullptr) {
	MeruSnapshot *snap = nullptr;
	OK(meru_txn_snapshot(txn, table, &snap, &err));
	ArrowArrayStream stream{};
	OK(meru_scan_arrow(snap, nullptr, nullptr, 0, &stream, &err));
	meru_snapshot_release(snap);
	return Drain(stream);
}

void Isolation() {
	auto db = OpenSimple("isolation");
	auto schema = SchemaOf(db);
	PutSimple(db, 1, "before", 0);
	OK(meru_flush(db, &err));
	auto txn = Begin(db);
	PutSimple(db, 2, "others", 0);
	CHECK(Count(txn) == 1, "it reads the state of its begin: %lld rows", (long long)Count(txn));
	PutRows(txn, schema, 1, 1);
	PutRows(txn, schema, 10, 10);
	CHECK(Count(txn) == 11 && CountRows(db) == 2, "own writes: %lld rows, others see %lld", (long long)Count(txn),
		  (long long)CountRows(db));
	// a statement is seen once it is committed, and leaves nothing else
	MeruWrite *w = nullptr;
	OK(meru_txn_write(txn, nullptr, &w, &err));
	ArrowArray rows{};
	Export(SimpleRows(500, 5), &rows);
	OK(meru_write_put_arrow(w, &rows, &schema, &err));
	CHECK(Count(txn) == 11, "an open statement is seen");
	meru_write_free(w);
	CHECK(Count(txn) == 11, "a statement that was given up is seen");
	// snapshots stay as they are
	MeruSnapshot *snap = nullptr;
	OK(meru_txn_snapshot(txn, nullptr, &snap, &err));
	PutRows(txn, schema, 100, 1);
	MeruSnapshotInfo info{};
	OK(meru_snapshot_info(snap, &info, &err));
	CHECK(info.memory_rows == 11, "memory rows %llu", (unsigned long long)info.memory_rows);
	uint64_t seq = 0;
	OK(meru_txn_commit(txn, &seq, &err));
	CHECK(seq > 0 && CountRows(db) == 13, "after the commit: %lld rows", (long long)CountRows(db));
	ArrowArrayStream stream{};
	OK(meru_scan_arrow(snap, nullptr, nullptr, 0, &stream, &err));
	CHECK(Drain(stream) == 11, "a snapshot that outlives its transaction");
	meru_snapshot_release(snap);
	EXPECT(MeruStatus_ErrClosed, meru_txn_commit(txn, &seq, &err));
	meru_txn_rollback(txn);
	meru_txn_free(txn);
	CHECK(CountRows(db) == 13, "a rollback after the commit");
	Release(schema);
	OK(meru_close_free(db, &err));
}

void TxnConflicts() {
	auto db = OpenSimple("txn_conflicts");
	auto schema = SchemaOf(db);
	auto first = Begin(db), second = Begin(db), third = Begin(db);
	PutRows(first, schema, 0, 10);
	PutRows(second, schema, 9, 3);
	PutRows(third, schema, 20, 3);
	OK(meru_txn_commit(first, nullptr, &err));
	EXPECT_ABOUT(MeruStatus_ErrConflict, "\"simple\"", meru_txn_commit(second, nullptr, &err));
	OK(meru_txn_commit(third, nullptr, &err));
	CHECK(CountRows(db) == 13, "%lld rows", (long long)CountRows(db));
	for (auto txn : {first, second, third}) {
		meru_txn_free(txn);
	}
	CHECK(Stat(db, "transactions_committed") == 2 && Stat(db, "transactions_rolled_back") == 1 &&
			  Stat(db, "transaction_conflicts") == 1 && Stat(db, "transactions_open") == 0,
		  "statistics");
	Release(schema);
	OK(meru_close_free(db, &err));
}

// More than memory: the rest is in files, gone with the transaction.
void LargeTransaction() {
	auto db = OpenSimple("txn_large", {"memtable_bytes", "1048576"});
	auto schema = SchemaOf(db);
	for (auto commit : {false, true}) {
		auto txn = Begin(db);
		for (int64_t at = 0; at < 100000; at += 10000) {
			PutRows(txn, schema, at, 10000);
		}
		CHECK(Count(txn) == 100000 && CountRows(db) == 0, "%lld rows", (long long)Count(txn));
		CHECK(Stat(db, "transactions_file_bytes") > (1 << 20) && Stat(db, "transactions_memory_bytes") <= (1 << 18),
			  "%lld bytes in files, %lld in memory", Stat(db, "transactions_file_bytes"),
			  Stat(db, "transactions_memory_bytes"));
		if (commit) {
			OK(meru_txn_commit(txn, nullptr, &err));
		}
		meru_txn_free(txn);
		CHECK(Stat(db, "transactions_file_bytes") == 0, "%lld bytes are left", Stat(db, "transactions_file_bytes"));
	}
	CHECK(CountRows(db) == 100000, "%lld rows", (long long)CountRows(db));
	auto txn = Begin(db);
	PutRows(txn, schema, 0, 100000);
	meru_txn_set_interrupt(
		txn, [](void *) { return 1; }, nullptr);
	EXPECT(MeruStatus_ErrCancelled, meru_txn_commit(txn, nullptr, &err));
	meru_txn_free(txn);
	Release(schema);
	OK(meru_close_free(db, &err));
}

// A table that comes with the transaction, and one that goes.
void Definitions() {
	auto db = OpenSimple("txn_tables");
	auto schema = SchemaOf(db);
	auto other = BuildSchema(
		"other", {{"id", MeruColumnType_Int64}, {"s", MeruColumnType_Utf8}, {"d", MeruColumnType_Double}}, {0});
	auto txn = Begin(db), late = Begin(db), drops = Begin(db);
	MeruTableSchema *seen = nullptr;
	MeruWrite *w = nullptr;
	MeruHandle *handle = nullptr;
	OK(meru_txn_create_table(txn, other, &err));
	EXPECT_ABOUT(MeruStatus_ErrAlreadyExists, "other", meru_txn_create_table(txn, other, &err));
	OK(meru_txn_write_table(late, other, 0, &w, &err));
	EXPECT(MeruStatus_ErrNotFound, meru_txn_schema(late, "other", &seen, &err));
	OK(meru_write_commit(w, nullptr, &err));
	meru_write_free(w);
	CHECK(Count(late, "other") == 0, "rows of a new table");
	OK(meru_txn_write(txn, "OTHER", &w, &err));
	ArrowArray rows{};
	Export(SimpleRows(0, 7), &rows);
	OK(meru_write_put_arrow(w, &rows, &schema, &err));
	OK(meru_write_commit(w, nullptr, &err));
	meru_write_free(w);
	EXPECT(MeruStatus_ErrNotFound, meru_open_table(db, "other", &handle, &err));
	OK(meru_txn_commit(txn, nullptr, &err));
	OK(meru_open_table(db, "other", &handle, &err));
	CHECK(CountRows(handle) == 7, "%lld rows", (long long)CountRows(handle));
	EXPECT_ABOUT(MeruStatus_ErrConflict, "other", meru_txn_commit(late, nullptr, &err));
	OK(meru_txn_drop_table(drops, nullptr, &err));
	EXPECT(MeruStatus_ErrNotFound, meru_txn_drop_table(drops, nullptr, &err));
	OK(meru_txn_commit(drops, nullptr, &err));
	EXPECT(MeruStatus_ErrNotFound, meru_table_schema_get(db, &seen, &err));
	for (auto t : {txn, late, drops}) {
		meru_txn_free(t);
	}
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "txn", meru_txn_create_table(nullptr, other, &err));
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "txn", meru_txn_drop_table(nullptr, nullptr, &err));
	meru_table_schema_free(other);
	meru_free(handle);
	Release(schema);
	OK(meru_close_free(db, &err));
}

void WrongUse() {
	auto db = OpenSimple("txn_wrong");
	auto schema = SchemaOf(db);
	auto txn = Begin(db);
	MeruSnapshot *snap = nullptr;
	MeruWrite *w = nullptr;
	MeruTableSchema *own = nullptr;
	auto arg = MeruStatus_ErrInvalidArg;
	EXPECT_ABOUT(arg, "db", meru_txn_begin(nullptr, &txn, &err));
	EXPECT_ABOUT(arg, "txn", meru_txn_begin(db, nullptr, &err));
	EXPECT_ABOUT(arg, "txn", meru_txn_snapshot(nullptr, nullptr, &snap, &err));
	EXPECT_ABOUT(arg, "snapshot", meru_txn_snapshot(txn, nullptr, nullptr, &err));
	EXPECT_ABOUT(arg, "write", meru_txn_write(txn, nullptr, nullptr, &err));
	EXPECT_ABOUT(arg, "table", meru_txn_write(txn, "\xff", &w, &err));
	EXPECT_ABOUT(arg, "schema", meru_txn_schema(txn, nullptr, nullptr, &err));
	EXPECT_ABOUT(MeruStatus_ErrNotFound, "\"other\"", meru_txn_snapshot(txn, "other", &snap, &err));
	EXPECT_ABOUT(MeruStatus_ErrNotFound, "\"other\"", meru_txn_write(txn, "other", &w, &err));
	EXPECT_ABOUT(MeruStatus_ErrNotFound, "\"other\"", meru_txn_schema(txn, "other", &own, &err));
	EXPECT_ABOUT(arg, "txn", meru_txn_commit(reinterpret_cast<MeruTxn *>(db), nullptr, &err));
	OK(meru_txn_schema(txn, nullptr, &own, &err));
	CHECK(meru_table_schema_column_count(own) == 3, "schema of a transaction");
	meru_table_schema_free(own);
	// a write that outlives its transaction; a block of another write
	OK(meru_txn_write(txn, "simple", &w, &err));
	ArrowArray rows{};
	Export(SimpleRows(0, 3), &rows);
	OK(meru_write_put_arrow(w, &rows, &schema, &err));
	meru_txn_free(txn);
	EXPECT(MeruStatus_ErrClosed, meru_write_commit(w, nullptr, &err));
	meru_write_free(w);
	EXPECT_ABOUT(arg, "txn", meru_txn_commit(txn, nullptr, &err));
	meru_txn_rollback(txn);
	meru_txn_free(txn);
	meru_txn_free(nullptr);
	meru_txn_rollback(nullptr);
	// closed and freed under a transaction
	txn = Begin(db);
	PutRows(txn, schema, 0, 3);
	OK(meru_close_free(db, &err));
	CHECK(Count(txn) == 3, "it reads on");
	EXPECT(MeruStatus_ErrClosed, meru_txn_commit(txn, nullptr, &err));
	meru_txn_free(txn);
	db = Open(In("txn_wrong"), {"read_only", "true"});
	EXPECT(MeruStatus_ErrReadOnly, meru_txn_begin(db, &txn, &err));
	CHECK(CountRows(db) == 0, "%lld rows", (long long)CountRows(db));
	meru_free(db);
	Release(schema);
}

} // namespace

void TxnCases() {
	check_run("what a transaction sees", Isolation);
	check_run("conflicts of transactions", TxnConflicts);
	check_run("transactions beyond memory", LargeTransaction);
	check_run("tables that come and go in a transaction", Definitions);
	check_run("wrong use of transactions", WrongUse);
}
