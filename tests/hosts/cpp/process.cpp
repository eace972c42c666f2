// Threads, forked children, and what stays behind over time.
#include <atomic>
#include <dirent.h>
#include <fcntl.h>
#include <random>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>

#include "kit.hpp"

namespace {

// Eight threads on one handle: each has keys of its own, one moves amounts between accounts, one sums them up.
void Threads() {
	auto db = OpenSimple("threads", {"durability", "os", "memtable_bytes", "1048576"});
	const int accounts = 20, writers = 4, rounds = 300;
	for (int i = 0; i < accounts; i++) {
		PutSimple(db, i, "account", 100);
	}
	std::atomic<bool> stop{false};
	std::atomic<int> wrong{0}, errors{0};
	auto sum = [&](MeruHandle *from) {
		MeruSnapshot *s = nullptr;
		if (meru_snapshot_acquire(from, &s, nullptr)) {
			errors++;
			return;
		}
		MeruValue upper = I64(accounts);
		MeruScanRange range = {nullptr, 0, 0, &upper, 1, 1, 0, 0};
		ArrowArrayStream stream{};
		if (meru_scan_arrow(s, &range, nullptr, 0, &stream, nullptr)) {
			errors++;
		} else {
			double total = 0;
			ArrowArray a{};
			while (stream.get_next(&stream, &a) == 0 && a.release) {
				for (int64_t i = 0; i < a.length; i++) {
					total += At<double>(*a.children[2], i);
				}
				Release(a);
			}
			Release(stream);
			wrong += total != accounts * 100;
		}
		meru_snapshot_release(s);
	};
	std::vector<std::thread> threads;
	threads.emplace_back([&] { // the bank
		std::mt19937 rng(1);
		double balance[accounts];
		std::fill(balance, balance + accounts, 100);
		while (!stop) {
			int a = int(rng() % accounts), b = int(rng() % accounts);
			if (a == b) {
				continue;
			}
			balance[a] -= 1;
			balance[b] += 1;
			MeruValue f[2][3] = {{I64(a), Text("account"), Dbl(balance[a])},
								 {I64(b), Text("account"), Dbl(balance[b])}};
			MeruRow rows[2] = {{f[0], 3}, {f[1], 3}};
			errors += meru_put_batch(db, rows, 2, nullptr, nullptr) != 0;
		}
	});
	for (int r = 0; r < 2; r++) {
		threads.emplace_back([&] {
			while (!stop) {
				sum(db);
			}
		});
	}
	threads.emplace_back([&] { // flushes, and handles that come and go
		while (!stop) {
			errors += meru_flush(db, nullptr) != 0;
			MeruHandle *other = nullptr;
			if (meru_open_reader(In("threads").c_str(), &other, nullptr)) {
				errors++;
			} else {
				sum(other);
				meru_free(other);
			}
		}
	});
	std::vector<std::thread> workers;
	for (int w = 0; w < writers; w++) {
		workers.emplace_back([&, w] {
			for (int i = 0; i < rounds; i++) {
				auto text = std::to_string(w) + "/" + std::to_string(i);
				MeruValue f[3] = {I64(1000 * (w + 1) + i), Bytes(text), Dbl(i)};
				MeruRow row = {f, 3};
				errors += meru_put(db, &row, nullptr, nullptr) != 0;
				int found = 0;
				MeruRow *got = nullptr;
				errors += meru_get(db, f, 1, &found, &got, nullptr) != 0;
				wrong += !found || !SameValue(got->fields[1], f[1]);
				meru_row_free(got);
				if (i % 3 == 0) {
					errors += meru_delete(db, f, 1, nullptr, nullptr) != 0;
					errors += meru_get(db, f, 1, &found, &got, nullptr) != 0;
					wrong += found;
				}
			}
		});
	}
	for (auto &t : workers) {
		t.join();
	}
	stop = true;
	for (auto &t : threads) {
		t.join();
	}
	CHECK(errors == 0 && wrong == 0, "%d errors, %d wrong answers", errors.load(), wrong.load());
	CHECK(CountRows(db) == accounts + writers * (rounds - rounds / 3), "%lld rows", (long long)CountRows(db));
	OK(meru_close_free(db, &err));
	OK(meru_open_existing(In("threads").c_str(), 0, nullptr, &db, &err));
	CHECK(CountRows(db) == accounts + writers * (rounds - rounds / 3), "reopened");
	sum(db);
	CHECK(wrong == 0, "the sum after reopening");
	OK(meru_close_free(db, &err));
}

// In a forked child everything that could enter Go refuses, and what is C memory can still be freed.
void ForkedChild() {
	auto db = OpenSimple("fork");
	PutSimple(db, 1, "a", 1);
	auto arrow = SchemaOf(db);
	MeruSnapshot *snap = nullptr;
	MeruWrite *w = nullptr;
	MeruTableSchema *schema = nullptr;
	auto options = meru_options_new();
	OK(meru_snapshot_acquire(db, &snap, &err));
	OK(meru_write_begin(db, &w, &err));
	OK(meru_table_schema_get(db, &schema, &err));
	ArrowArrayStream stream{}, fresh{};
	OK(meru_scan_arrow(snap, nullptr, nullptr, 0, &stream, &err));
	OK(meru_scan_arrow(snap, nullptr, nullptr, 0, &fresh, &err));
	ArrowArray batch{};
	CHECK(stream.get_next(&stream, &batch) == 0 && batch.release, "batch");
	int status = InChild([&] {
		const int no = MeruStatus_ErrUnsupported;
		int bad = 0;
		auto expect = [&](int got) {
			bad += got != no;
		};
		MeruHandle *h = nullptr;
		MeruOpenOptions opts{};
		MeruValue v = I64(1), f[3] = {I64(1), Text("x"), Dbl(1)};
		MeruRow row = {f, 3}, *got = nullptr;
		MeruScanResult *result = nullptr;
		MeruManifestInfo *info = nullptr;
		MeruStats stats{};
		MeruColumnInfo column{};
		MeruSnapshot *s = nullptr;
		MeruSnapshotInfo si{};
		MeruFileInfo fi{};
		MeruWrite *w2 = nullptr;
		MeruTableSchema *ts = nullptr;
		ArrowSchema as{};
		ArrowArrayStream st{};
		ArrowArray one{};
		const uint32_t *positions;
		uintptr_t count;
		int found;
		char *err = nullptr, *json = nullptr;
		expect(meru_open(&opts, nullptr, &h, &err));
		bad += !err || !strstr(err, "fork");
		meru_free_string(err);
		expect(meru_open_existing("x", 0, nullptr, &h, nullptr));
		expect(meru_open_with("x", options, &h, nullptr));
		expect(meru_open_reader("x", &h, nullptr));
		expect(meru_reader_cache_set(1, nullptr));
		expect(meru_put(db, &row, nullptr, nullptr));
		expect(meru_put_batch(db, &row, 1, nullptr, nullptr));
		expect(meru_delete(db, &v, 1, nullptr, nullptr));
		expect(meru_get(db, &v, 1, &found, &got, nullptr));
		expect(meru_multi_get(db, &row, 1, &result, nullptr));
		expect(meru_scan(db, nullptr, 0, nullptr, 0, &result, nullptr));
		expect(meru_flush(db, nullptr));
		expect(meru_refresh(db, nullptr));
		expect(meru_stats(db, &stats, nullptr));
		expect(meru_stats_json(db, &json, nullptr));
		expect(meru_manifest_info(nullptr, "x", &info, nullptr));
		expect(meru_options_set(options, "read_only", "true", nullptr));
		expect(meru_table_schema_add_column(schema, &column, nullptr));
		expect(meru_table_schema_add_key(schema, 0, nullptr));
		expect(meru_table_schema_column(schema, 0, &column, nullptr));
		expect(meru_create_table(db, schema, nullptr));
		expect(meru_drop_table(db, nullptr));
		expect(meru_table_schema_get(db, &ts, nullptr));
		expect(meru_write_begin(db, &w2, nullptr));
		int released = arrays_released;
		Export(SimpleRows(0, 1), &one);
		expect(meru_write_put_arrow(w, &one, &arrow, nullptr));
		Export(SimpleRows(0, 1), &one);
		expect(meru_write_delete_arrow(w, &one, &arrow, nullptr));
		Export(SimpleRows(0, 1), &one);
		expect(meru_put_arrow(db, &one, &arrow, nullptr, nullptr));
		Export(SimpleRows(0, 1), &one);
		expect(meru_snapshot_get(snap, &one, &arrow, &found, &one, nullptr));
		bad += arrays_released != released + 4;
		expect(meru_write_commit(w, nullptr, nullptr));
		meru_write_set_interrupt(w, nullptr, nullptr);
		meru_write_free(w);
		expect(meru_snapshot_acquire(db, &s, nullptr));
		expect(meru_snapshot_info(snap, &si, nullptr));
		expect(meru_snapshot_schema(snap, &ts, nullptr));
		expect(meru_snapshot_file(snap, 0, &fi, nullptr));
		expect(meru_snapshot_deletes(snap, 0, &positions, &count, nullptr));
		expect(meru_snapshot_overlay(snap, nullptr, 0, &st, nullptr));
		expect(meru_snapshot_overlay_range(snap, nullptr, nullptr, 0, &st, nullptr));
		expect(meru_scan_arrow(snap, nullptr, nullptr, 0, &st, nullptr));
		expect(meru_arrow_schema(schema, &as, nullptr));
		expect(meru_close(db, nullptr));
		bad += meru_state_version(db) != 0 || meru_catalog_path(db) || meru_is_closed(db) != 1 || meru_options_new() ||
			   meru_table_schema_new("x") || meru_table_schema_name(schema) || meru_runtime_new(1, nullptr);
		bad += meru_abi_version() != MERU_ABI_MAJOR * 65536u + MERU_ABI_MINOR || !meru_version();
		bad += fresh.get_next(&fresh, &one) == 0 || !fresh.get_last_error(&fresh);
		bad += fresh.get_schema(&fresh, &as) == 0;
		Release(batch);
		Release(arrow);
		Release(stream);
		Release(fresh);
		bad += batch.release || stream.release;
		meru_snapshot_release(snap);
		meru_table_schema_free(schema);
		meru_options_free(options);
		meru_free(db);
		expect(meru_close_free(db, nullptr));
		return bad > 120 ? 120 : bad;
	});
	CHECK(status == 0, "the child: %d", status);
	CHECK(At<int64_t>(*batch.children[0], 0) == 1 && Drain(fresh) == 1, "the parent goes on");
	Release(batch);
	Release(stream);
	Release(arrow);
	meru_write_free(w);
	meru_snapshot_release(snap);
	meru_table_schema_free(schema);
	meru_options_free(options);
	PutSimple(db, 2, "b", 2);
	CHECK(CountRows(db) == 2, "and writes");
	OK(meru_close_free(db, &err));
}

// Forks while other threads are in the engine, where entering Go in the child would hang.
void ForkUnderLoad() {
	auto db = OpenSimple("fork-load", {"durability", "os"});
	std::atomic<bool> stop{false};
	std::vector<std::thread> threads;
	for (int t = 0; t < 4; t++) {
		threads.emplace_back([&, t] {
			for (int i = 0; !stop; i++) {
				MeruValue f[3] = {I64(t * 1000 + i % 1000), Text("x"), Dbl(i)};
				MeruRow row = {f, 3};
				meru_put(db, &row, nullptr, nullptr);
			}
		});
	}
	int bad = 0;
	for (int i = 0; i < 20; i++) {
		bad += InChild([&] { return meru_flush(db, nullptr) == MeruStatus_ErrUnsupported ? 0 : 1; }) != 0;
	}
	stop = true;
	for (auto &t : threads) {
		t.join();
	}
	CHECK(bad == 0, "%d of 20 children failed", bad);
	OK(meru_close_free(db, &err));
}

long ResidentKB() {
	FILE *f = fopen("/proc/self/statm", "r");
	long total = 0, resident = 0;
	if (f) {
		if (fscanf(f, "%ld %ld", &total, &resident) != 2) {
			resident = 0;
		}
		fclose(f);
	}
	return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

int OpenFiles() {
	int n = 0;
	if (DIR *d = opendir("/proc/self/fd")) {
		while (readdir(d)) {
			n++;
		}
		closedir(d);
	}
	return n;
}

const std::vector<const char *> frugal = {"retain_versions", "1", "gc_grace_secs", "0"};

// The table is made anew each time: files that pile up are no leak.
void OneRound(int i) {
	auto db = Open(In("rounds"), frugal);
	auto table = BuildSchema(
		"simple", {{"id", MeruColumnType_Int64}, {"s", MeruColumnType_Utf8}, {"d", MeruColumnType_Double}}, {0});
	OK(meru_drop_table(db, &err));
	OK(meru_create_table(db, table, &err));
	meru_table_schema_free(table);
	PutSimple(db, i % 50, "round", i);
	auto schema = SchemaOf(db);
	ArrowArray rows{};
	Export(SimpleRows(0, 100), &rows);
	OK(meru_put_arrow(db, &rows, &schema, nullptr, &err));
	Release(schema);
	CHECK(CountRows(db) == 100, "rows");
	MeruScanResult *all = nullptr;
	OK(meru_scan(db, nullptr, 0, nullptr, 0, &all, &err));
	meru_scan_result_free(all);
	MeruManifestInfo *info = nullptr;
	OK(meru_manifest_info(nullptr, In("rounds").c_str(), &info, &err));
	meru_manifest_info_free(info);
	MeruRow none = {nullptr, 0};
	EXPECT(MeruStatus_ErrSchemaMismatch, meru_put(db, &none, nullptr, &err));
	if (i % 2) {
		OK(meru_close_free(db, &err));
	} else {
		meru_free(db);
	}
}

// Many rounds of open, write, scan and close leave no memory, files or handles behind.
void OverTime() {
	auto db = OpenSimple("rounds", frugal);
	OK(meru_close_free(db, &err));
	OK(meru_reader_cache_set(0, &err));
	const int warmup = 60, rounds = 240;
	for (int i = 0; i < warmup; i++) {
		OneRound(i);
	}
	long before = ResidentKB();
	int files = OpenFiles();
	for (int i = 0; i < rounds; i++) {
		OneRound(i);
	}
	long grown = ResidentKB() - before;
#if !defined(__SANITIZE_ADDRESS__)
	CHECK(grown < 16 * 1024, "%d rounds took %ld KB", rounds, grown);
#else
	(void)grown; // the sanitizer keeps freed memory back
#endif
	CHECK(OpenFiles() == files, "%d open files, %d before", OpenFiles(), files);
	db = Open(In("rounds"));
	CHECK(Stat(db, "database") == 1 && Stat(db, "snapshot") == 0 && Stat(db, "stream") == 0 && Stat(db, "write") == 0 &&
			  Stat(db, "openOptions") == 0 && Stat(db, "tableSchema") == 0,
		  "handles left open: %lld databases, %lld snapshots, %lld streams", Stat(db, "database"), Stat(db, "snapshot"),
		  Stat(db, "stream"));
	OK(meru_close_free(db, &err));
	OK(meru_reader_cache_set(8, &err));
}

// Writes rows that do not compress until one fails; returns how many there are, and the status.
int64_t PutUntilFull(MeruHandle *db, int64_t from, int *status, std::string *message) {
	std::string big(64 << 10, 'x');
	std::mt19937 rng(7);
	for (auto &c : big) {
		c = char(rng());
	}
	char *err = nullptr;
	int64_t id = from;
	for (*status = 0; id < from + 1000; id++) {
		big[size_t(id)]++;
		MeruValue f[2] = {I64(id), Bytes(big, MeruColumnType_ByteArray)};
		MeruRow row = {f, 2};
		if ((*status = meru_put(db, &row, nullptr, &err)) != 0) {
			break;
		}
	}
	*message = err ? err : "";
	meru_free_string(err);
	return id;
}

// A full disk: the write fails with its own status, reads go on, and so do writes once there is room again.
void DiskFull(const std::string &mount_point) {
	auto filler = mount_point + "/filler";
	auto reserve = [&] {
		FILE *f = fopen(filler.c_str(), "wb");
		std::string block(3 << 20, 'f');
		CHECK(f && fwrite(block.data(), 1, block.size(), f) == block.size() && fclose(f) == 0, "filler");
	};
	reserve();
	auto db = Open(mount_point + "/db", {"memtable_bytes", "1048576", "gc_grace_secs", "0", "retain_versions", "1"});
	auto schema = BuildSchema("t", {{"id", MeruColumnType_Int64}, {"b", MeruColumnType_ByteArray}}, {0});
	OK(meru_create_table(db, schema, &err));
	meru_table_schema_free(schema);
	int status = 0;
	std::string text;
	int64_t written = PutUntilFull(db, 0, &status, &text);
	CHECK(status == MeruStatus_ErrNoSpace && text.find(mount_point) != std::string::npos,
		  "status %d after %lld rows: %s", status, (long long)written, text.c_str());
	CHECK(CountRows(db) == written, "%lld rows, %lld acknowledged", (long long)CountRows(db), (long long)written);
	CHECK(unlink(filler.c_str()) == 0, "unlink");
	int64_t more = PutUntilFull(db, written, &status, &text);
	CHECK(more > written, "no row after space was freed: %s", text.c_str());
	CHECK(CountRows(db) == more, "%lld rows, %lld acknowledged", (long long)CountRows(db), (long long)more);
	meru_free(db);
	char *err = nullptr;
	status = meru_open_existing((mount_point + "/db").c_str(), 1, nullptr, &db, &err);
	CHECK(status == 0, "reopened read-only: %d %s", status, err ? err : "");
	meru_free_string(err);
	if (status == 0) {
		CHECK(CountRows(db) == more, "reopened: %lld rows, %lld acknowledged", (long long)CountRows(db),
			  (long long)more);
		meru_free(db);
	}
	OK(meru_reader_cache_set(0, &err)); // lets go of the files
	OK(meru_reader_cache_set(8, &err));
}

void OutOfSpace() {
	auto point = In("small-disk");
	mkdir(point.c_str(), 0755);
	if (mount("none", point.c_str(), "tmpfs", 0, "size=16m") != 0) {
		check_skip("full disk", "a tmpfs cannot be mounted here");
		return;
	}
	DiskFull(point);
	CHECK(umount(point.c_str()) == 0, "umount: a file is still open");
}

} // namespace

void ThreadCases() {
	check_run("threads", Threads);
}

void ProcessCases() {
	check_run("forked child", ForkedChild);
	check_run("forks under load", ForkUnderLoad);
	check_run("full disk", OutOfSpace);
	check_run("over time", OverTime);
}
