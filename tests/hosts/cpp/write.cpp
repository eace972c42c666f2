// Writing by Arrow: ownership, atomicity, bulk loads, deletions, interrupts, bad input.
#include <pthread.h>

#include <thread>

#include "kit.hpp"

namespace {

// Expects the array to be released exactly once by the call, and the schema to be left alone.
struct Ownership {
	int arrays = arrays_released, schemas = schemas_released;
	~Ownership() {
		CHECK(arrays_released == arrays + 1, "the array was released %d times", arrays_released - arrays);
		CHECK(schemas_released == schemas, "the caller's schema was released");
	}
};

const std::vector<std::pair<std::string, std::string>> simple_columns = {{"id", "l"}, {"s", "u"}, {"d", "g"}};

// Puts an array through meru_put_arrow() and expects a status and what the message names (NULL: no error).
void PutExpect(MeruHandle *db, Node node, const std::vector<std::pair<std::string, std::string>> &columns, int status,
			   const char *about) {
	ArrowSchema schema{};
	MakeSchema(columns, &schema);
	{
		Ownership o;
		ArrowArray rows{};
		Export(std::move(node), &rows);
		char *err = nullptr;
		int got = meru_put_arrow(db, &rows, &schema, nullptr, &err);
		CHECK(got == status, "status %d: %s", got, err ? err : "no message");
		CHECK(!about ? !err : err && strstr(err, about), "message %s", err ? err : "NULL");
		CHECK(!rows.release, "the array is not marked released");
		meru_free_string(err);
	}
	CHECK(schema.release && schema.n_children == int64_t(columns.size()) && schema.children[0]->release, "schema");
	Release(schema);
}

void PutAndOwn() {
	auto db = OpenSimple("put-arrow");
	PutExpect(db, SimpleRows(0, 100), simple_columns, 0, nullptr);
	CHECK(CountRows(db) == 100, "rows");
	PutExpect(db, SimpleRows(50, 100), simple_columns, 0, nullptr);
	CHECK(CountRows(db) == 150, "rows, upserted");
	// empty arrays, also without buffers
	PutExpect(db, SimpleRows(0, 0), simple_columns, 0, nullptr);
	auto empty = SimpleRows(0, 0);
	for (auto &c : empty.children) {
		c.buffer_is_null.assign(c.buffers.size(), true);
	}
	PutExpect(db, std::move(empty), simple_columns, 0, nullptr);
	CHECK(CountRows(db) == 150, "empty arrays");
	OK(meru_close_free(db, &err));
}

void OtherEncodings() {
	auto db = OpenSimple("encodings");
	PutExpect(db, Struct({Fixed<int64_t>({1, 2}), Strings<int64_t>({"large", ""}), Fixed<double>({1, 2})}, 2),
			  {{"id", "l"}, {"s", "U"}, {"d", "g"}}, 0, nullptr);
	// columns go by position; their names do not matter
	PutExpect(db, Struct({Fixed<int64_t>({3}), Strings<int32_t>({"x"}), Fixed<double>({3})}, 1),
			  {{"", "l"}, {"other", "u"}, {"d", "g"}}, 0, nullptr);
	CHECK(CountRows(db) == 3, "rows");
	// offsets of the array and of its children
	auto node = SimpleRows(100, 10);
	node.offset = 2;
	node.length = 5; // rows 102 to 106
	PutExpect(db, std::move(node), simple_columns, 0, nullptr);
	node = SimpleRows(200, 10);
	for (auto &c : node.children) {
		c.offset = 3;
		c.length = 7;
	}
	node.offset = 1;
	node.length = 4; // rows 204 to 207
	PutExpect(db, std::move(node), simple_columns, 0, nullptr);
	MeruScanResult *all = nullptr;
	OK(meru_scan(db, nullptr, 0, nullptr, 0, &all, &err));
	std::vector<int64_t> want = {1, 2, 3, 102, 103, 104, 105, 106, 204, 205, 206, 207};
	CHECK(all->count == want.size(), "%zu rows", size_t(all->count));
	for (size_t i = 0; i < want.size() && i < all->count; i++) {
		auto f = all->entries[i].fields;
		CHECK(f[0].inner.v_int64 == want[i], "id %lld", (long long)f[0].inner.v_int64);
		if (want[i] > 100) {
			auto text = "s" + std::to_string(want[i]);
			CHECK(SameValue(f[1], Bytes(text)) && f[2].inner.v_double == double(want[i]) / 2, "row %lld",
				  (long long)want[i]);
		}
	}
	meru_scan_result_free(all);
	OK(meru_close_free(db, &err));
}

void BadArrays() {
	auto db = OpenSimple("bad-arrow");
	const int arg = MeruStatus_ErrInvalidArg;
	auto two = [](Node id, Node s, Node d) {
		return Struct({std::move(id), std::move(s), std::move(d)}, 2);
	};
	auto ids = [] {
		return Fixed<int64_t>({1, 2});
	};
	auto texts = [] {
		return Strings<int32_t>({"a", "b"});
	};
	auto doubles = [] {
		return Fixed<double>({1, 2});
	};
	PutExpect(db, Struct({ids(), texts()}, 2), {{"id", "l"}, {"s", "u"}}, MeruStatus_ErrSchemaMismatch, "columns");
	PutExpect(db, two(Fixed<int32_t>({1, 2}), texts(), doubles()), {{"id", "i"}, {"s", "u"}, {"d", "g"}},
			  MeruStatus_ErrSchemaMismatch, "id");
	PutExpect(db, two(ids(), texts(), Fixed<float>({1, 2})), {{"id", "l"}, {"s", "u"}, {"d", "f"}},
			  MeruStatus_ErrSchemaMismatch, "d");
	PutExpect(db, two(Fixed<int64_t>({1, 2}, {true, false}), texts(), doubles()), simple_columns, arg, "id");
	PutExpect(db, two(ids(), Strings<int32_t>({"a", "\xff"}), doubles()), simple_columns, arg, "s");
	auto node = SimpleRows(0, 3);
	node.buffers[0] = Bitmap({true, false, true});
	node.buffer_is_null[0] = false;
	node.null_count = 1;
	PutExpect(db, std::move(node), simple_columns, arg, "row 1");
	node = SimpleRows(0, 3);
	node.length = 4;
	PutExpect(db, std::move(node), simple_columns, arg, "child 0");
	node = SimpleRows(0, 3);
	node.length = -1;
	PutExpect(db, std::move(node), simple_columns, arg, "length");
	node = SimpleRows(0, 3);
	node.offset = INT64_MAX;
	PutExpect(db, std::move(node), simple_columns, arg, "offset");
	node = SimpleRows(0, 3);
	node.children.pop_back();
	PutExpect(db, std::move(node), simple_columns, arg, "children");
	node = SimpleRows(0, 3);
	node.children[1].buffers.pop_back();
	PutExpect(db, std::move(node), simple_columns, arg, "buffers");
	PutExpect(db, SimpleRows(0, 3), {{"id", "l"}, {"s", "?"}, {"d", "g"}}, arg, "schema");
	// offsets of a string column that run backwards
	node = SimpleRows(0, 3);
	int32_t wild[4] = {0, 5, 2, 6};
	memcpy(node.children[1].buffers[1].data(), wild, sizeof wild);
	PutExpect(db, std::move(node), simple_columns, arg, "s");
	CHECK(CountRows(db) == 0, "a refused array left rows");

	ArrowSchema schema{};
	MakeSchema(simple_columns, &schema);
	ArrowArray rows{};
	EXPECT_ABOUT(arg, "rows", meru_put_arrow(db, nullptr, &schema, nullptr, &err));
	EXPECT_ABOUT(arg, "released", meru_put_arrow(db, &rows, &schema, nullptr, &err));
	{
		Ownership o;
		Export(SimpleRows(0, 3), &rows);
		EXPECT_ABOUT(arg, "schema", meru_put_arrow(db, &rows, nullptr, nullptr, &err));
	}
	{
		Ownership o;
		Export(SimpleRows(0, 3), &rows);
		EXPECT_ABOUT(arg, "db", meru_put_arrow(nullptr, &rows, &schema, nullptr, &err));
	}
	{
		Ownership o;
		Export(SimpleRows(0, 3), &rows);
		EXPECT_ABOUT(arg, "write", meru_write_put_arrow(nullptr, &rows, &schema, &err));
	}
	{
		Ownership o;
		Export(SimpleRows(0, 3), &rows);
		EXPECT_ABOUT(arg, "write", meru_write_delete_arrow(nullptr, &rows, &schema, &err));
	}
	Release(schema);
	{
		Ownership o;
		Export(SimpleRows(0, 3), &rows);
		EXPECT_ABOUT(arg, "schema", meru_put_arrow(db, &rows, &schema, nullptr, &err));
	}
	OK(meru_close_free(db, &err));
}

void Writes() {
	auto db = OpenSimple("writes");
	auto schema = SchemaOf(db);
	MeruWrite *w = nullptr;
	OK(meru_write_begin(db, &w, &err));
	ArrowArray rows{};
	Export(SimpleRows(0, 10), &rows);
	OK(meru_write_put_arrow(w, &rows, &schema, &err));
	CHECK(CountRows(db) == 0, "rows before the commit");
	ArrowSchema keys_schema{};
	MakeSchema({{"id", "l"}}, &keys_schema);
	Export(Struct({Fixed<int64_t>({3, 4, 77})}, 3), &rows);
	OK(meru_write_delete_arrow(w, &rows, &keys_schema, &err));
	Export(SimpleRows(4, 1), &rows); // later operations win
	OK(meru_write_put_arrow(w, &rows, &schema, &err));
	uint64_t seq = 0;
	OK(meru_write_commit(w, &seq, &err));
	CHECK(seq > 0 && CountRows(db) == 9, "%lld rows", (long long)CountRows(db));
	EXPECT(MeruStatus_ErrClosed, meru_write_commit(w, &seq, &err));
	Export(SimpleRows(0, 1), &rows);
	EXPECT(MeruStatus_ErrClosed, meru_write_put_arrow(w, &rows, &schema, &err));
	CHECK(!rows.release, "released");
	meru_write_free(w);
	meru_write_free(nullptr);
	// freed without a commit
	OK(meru_write_begin(db, &w, &err));
	Export(SimpleRows(1000, 10), &rows);
	OK(meru_write_put_arrow(w, &rows, &schema, &err));
	meru_write_free(w);
	CHECK(CountRows(db) == 9, "an aborted write");
	// after an error a write can only be freed
	OK(meru_write_begin(db, &w, &err));
	Export(SimpleRows(2000, 10), &rows);
	OK(meru_write_put_arrow(w, &rows, &schema, &err));
	Export(Struct({Fixed<int64_t>({1, 2}, {true, false}), Strings<int32_t>({"a", "b"}), Fixed<double>({1, 2})}, 2),
		   &rows);
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "id", meru_write_put_arrow(w, &rows, &schema, &err));
	char *err = nullptr;
	CHECK(meru_write_commit(w, &seq, &err) != 0, "a failed write was committed");
	meru_free_string(err);
	meru_write_free(w);
	CHECK(CountRows(db) == 9, "a failed write left rows");
	// an empty commit
	OK(meru_write_begin(db, &w, &err));
	OK(meru_write_commit(w, nullptr, &err));
	meru_write_free(w);
	Release(schema);
	Release(keys_schema);
	OK(meru_close_free(db, &err));
}

int64_t SumIDs(MeruHandle *db) {
	MeruSnapshot *snap = nullptr;
	OK(meru_snapshot_acquire(db, &snap, &err));
	ArrowArrayStream stream{};
	uint32_t id = 0;
	OK(meru_scan_arrow(snap, nullptr, &id, 1, &stream, &err));
	meru_snapshot_release(snap);
	int64_t sum = 0;
	Drain(stream, [&](const ArrowArray &a) {
		for (int64_t i = 0; i < a.length; i++) {
			sum += At<int64_t>(*a.children[0], i);
		}
	});
	return sum;
}

// Far more than a memtable: it goes to files, and is atomic all the same.
void BulkLoad() {
	auto db = OpenSimple("bulk", {"memtable_bytes", "1048576"});
	PutSimple(db, 5, "old", 0);
	PutSimple(db, -1, "stays", 0);
	auto schema = SchemaOf(db);
	MeruSnapshot *before = nullptr;
	OK(meru_snapshot_acquire(db, &before, &err));
	MeruWrite *w = nullptr;
	OK(meru_write_begin(db, &w, &err));
	const int64_t n = 200000, step = 20000;
	for (int64_t at = n - step; at >= 0; at -= step) { // downwards, so that it must sort
		ArrowArray rows{};
		Export(SimpleRows(at, step), &rows);
		OK(meru_write_put_arrow(w, &rows, &schema, &err));
	}
	CHECK(CountRows(db) == 2, "rows before the commit");
	uint64_t seq = 0;
	OK(meru_write_commit(w, &seq, &err));
	meru_write_free(w);
	CHECK(CountRows(db) == n + 1, "%lld rows", (long long)CountRows(db));
	CHECK(SumIDs(db) == n * (n - 1) / 2 - 1, "sum of the keys");
	CHECK(Stat(db, "bulk_loads") == 1, "bulk loads: %lld", Stat(db, "bulk_loads"));
	MeruSnapshotInfo info{};
	OK(meru_snapshot_info(before, &info, &err));
	CHECK(info.live_rows == 2, "the snapshot of before: %llu rows", (unsigned long long)info.live_rows);
	meru_snapshot_release(before);
	// deletions in bulk
	ArrowSchema keys_schema{};
	MakeSchema({{"id", "l"}}, &keys_schema);
	OK(meru_write_begin(db, &w, &err));
	std::vector<int64_t> keys;
	for (int64_t i = 0; i < n; i += 2) {
		keys.push_back(i);
	}
	ArrowArray rows{};
	size_t count = keys.size();
	Export(Struct({Fixed(keys)}, count), &rows);
	OK(meru_write_delete_arrow(w, &rows, &keys_schema, &err));
	OK(meru_write_commit(w, &seq, &err));
	meru_write_free(w);
	CHECK(CountRows(db) == n / 2 + 1, "%lld rows after deletions", (long long)CountRows(db));
	OK(meru_close_free(db, &err));
	OK(meru_open_existing(In("bulk").c_str(), 0, nullptr, &db, &err));
	CHECK(CountRows(db) == n / 2 + 1, "reopened");
	OK(meru_close_free(db, &err));
	Release(schema);
	Release(keys_schema);
}

struct Asked {
	int times = 0, say_yes_at = 1;
	pthread_t thread = pthread_self();
	bool other_thread = false;
	MeruWrite *write = nullptr;
	int reentered = -1;
};

int Ask(void *ctx) {
	auto a = static_cast<Asked *>(ctx);
	a->times++;
	a->other_thread |= !pthread_equal(a->thread, pthread_self());
	if (a->write) {
		a->reentered = meru_write_commit(a->write, nullptr, nullptr);
	}
	return a->times >= a->say_yes_at;
}

void Interrupts() {
	auto db = OpenSimple("interrupt", {"memtable_bytes", "1048576"});
	auto schema = SchemaOf(db);
	// It asks at least once a batch and once as it commits; how often beyond that depends on how long it waits.
	for (int yes_at = 1; yes_at <= 6; yes_at++) {
		Asked asked;
		asked.say_yes_at = yes_at;
		MeruWrite *w = nullptr;
		OK(meru_write_begin(db, &w, &err));
		meru_write_set_interrupt(w, Ask, &asked);
		char *err = nullptr;
		int status = 0;
		for (int64_t at = 0; at < 100000 && status == 0; at += 20000) {
			ArrowArray rows{};
			Export(SimpleRows(at, 20000), &rows);
			status = meru_write_put_arrow(w, &rows, &schema, &err);
			CHECK(!rows.release, "ownership");
		}
		if (status == 0) {
			status = meru_write_commit(w, nullptr, &err);
		}
		CHECK(status == MeruStatus_ErrCancelled && err, "asked %d times: status %d", asked.times, status);
		CHECK(!asked.other_thread, "asked on another thread");
		meru_free_string(err);
		meru_write_free(w);
		CHECK(CountRows(db) == 0, "an interrupted write left rows");
	}
	// small ones, a callback that says no and calls back, and none any more
	Asked no;
	no.say_yes_at = 1 << 30;
	MeruWrite *w = nullptr;
	OK(meru_write_begin(db, &w, &err));
	no.write = w;
	meru_write_set_interrupt(w, Ask, &no);
	ArrowArray rows{};
	Export(SimpleRows(0, 10), &rows);
	OK(meru_write_put_arrow(w, &rows, &schema, &err));
	OK(meru_write_commit(w, nullptr, &err));
	CHECK(no.times > 0 && no.reentered == MeruStatus_ErrInvalidArg, "asked %d times, %d", no.times, no.reentered);
	meru_write_free(w);
	OK(meru_write_begin(db, &w, &err));
	meru_write_set_interrupt(w, Ask, &no);
	meru_write_set_interrupt(w, nullptr, nullptr);
	int times = no.times;
	Export(SimpleRows(0, 10), &rows);
	OK(meru_write_put_arrow(w, &rows, &schema, &err));
	OK(meru_write_commit(w, nullptr, &err));
	CHECK(no.times == times, "a callback that was taken back");
	meru_write_free(w);
	Release(schema);
	OK(meru_close_free(db, &err));
}

// Blocks made by several threads, appended in order.
void Blocks() {
	auto db = OpenSimple("blocks", {"memtable_bytes", "1048576"});
	auto schema = SchemaOf(db);
	MeruWrite *w = nullptr;
	OK(meru_write_begin(db, &w, &err));
	constexpr int threads = 4, each = 8, rows_each = 5000;
	std::vector<MeruBlock *> blocks(threads * each, nullptr);
	std::vector<int> status(blocks.size(), -1);
	std::vector<std::thread> running;
	for (int t = 0; t < threads; t++) {
		running.emplace_back([&, t] {
			for (int i = 0; i < each; i++) {
				size_t at = size_t(i * threads + t);
				ArrowArray rows{};
				// Each begins in the middle of the one before: the keys do not ascend.
				Export(SimpleRows(int64_t(at) * rows_each / 2, rows_each), &rows);
				status[at] = meru_write_prepare_put_arrow(w, &rows, &schema, &blocks[at], nullptr);
			}
		});
	}
	for (auto &thread : running) {
		thread.join();
	}
	for (size_t at = 0; at < blocks.size(); at++) {
		CHECK(status[at] == MeruStatus_Ok && meru_block_bytes(blocks[at]) > rows_each * 8, "block %zu", at);
		OK(meru_write_append(w, blocks[at], &err));
		EXPECT(MeruStatus_ErrInvalidArg, meru_write_append(w, blocks[at], &err)); // it was taken
	}
	ArrowSchema keys_schema{};
	MakeSchema({{"id", "l"}}, &keys_schema);
	ArrowArray keys{};
	Export(Struct({Fixed<int64_t>({3, 4, 770000})}, 3), &keys);
	MeruBlock *block = nullptr;
	OK(meru_write_prepare_delete_arrow(w, &keys, &keys_schema, &block, &err));
	OK(meru_write_append(w, block, &err));
	// A bad one leaves the write as it is, and one that is not wanted is freed, after the write too.
	Export(Struct({Fixed<int64_t>({1}, {false}), Strings<int32_t>({"a"}), Fixed<double>({1})}, 1), &keys);
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "id", meru_write_prepare_put_arrow(w, &keys, &schema, &block, &err));
	Export(SimpleRows(0, 5000), &keys);
	OK(meru_write_prepare_put_arrow(w, &keys, &schema, &block, &err));
	OK(meru_write_commit(w, nullptr, &err));
	meru_write_free(w);
	EXPECT(MeruStatus_ErrInvalidArg, meru_write_append(w, nullptr, &err));
	meru_block_free(block);
	meru_block_free(block);
	meru_block_free(nullptr);
	int64_t want = (threads * each + 1) * rows_each / 2 - 2;
	CHECK(CountRows(db) == want, "%lld rows", (long long)CountRows(db));
	Release(schema);
	Release(keys_schema);
	OK(meru_close_free(db, &err));
}

// A table that comes with its rows.
void TableWithRows() {
	auto db = OpenSimple("with_rows");
	auto schema = SchemaOf(db);
	auto simple = BuildSchema(
		"SIMPLE", {{"id", MeruColumnType_Int64}, {"s", MeruColumnType_Utf8}, {"d", MeruColumnType_Double}}, {0});
	PutSimple(db, 7, "old", 1);
	MeruWrite *w = nullptr;
	EXPECT(MeruStatus_ErrAlreadyExists, meru_write_begin_table(db, simple, 0, &w, &err));
	ArrowArray rows{};
	for (int commit = 0; commit < 2; commit++) {
		OK(meru_write_begin_table(db, simple, 1, &w, &err));
		Export(SimpleRows(100, 10), &rows);
		OK(meru_write_put_arrow(w, &rows, &schema, &err));
		CHECK(CountRows(db) == 1, "the old table before the commit");
		if (commit) {
			OK(meru_write_commit(w, nullptr, &err));
		}
		meru_write_free(w);
	}
	CHECK(CountRows(db) == 10, "%lld rows", (long long)CountRows(db));
	meru_table_schema_free(simple);
	Release(schema);
	OK(meru_close_free(db, &err));
}

// A table dropped under a write: the commit says so.
void DroppedMeanwhile() {
	auto db = OpenSimple("conflict");
	auto schema = SchemaOf(db);
	MeruWrite *w = nullptr;
	OK(meru_write_begin(db, &w, &err));
	ArrowArray rows{};
	Export(SimpleRows(0, 10), &rows);
	OK(meru_write_put_arrow(w, &rows, &schema, &err));
	OK(meru_drop_table(db, &err));
	EXPECT(MeruStatus_ErrConflict, meru_write_commit(w, nullptr, &err));
	meru_write_free(w);
	Release(schema);
	OK(meru_close_free(db, &err));
}

} // namespace

void WriteCases() {
	check_run("put_arrow and ownership", PutAndOwn);
	check_run("other encodings and offsets", OtherEncodings);
	check_run("bad arrays", BadArrays);
	check_run("writes", Writes);
	check_run("bulk load", BulkLoad);
	check_run("blocks of several threads", Blocks);
	check_run("a table with its rows", TableWithRows);
	check_run("interrupts", Interrupts);
	check_run("a table dropped under a write", DroppedMeanwhile);
}
