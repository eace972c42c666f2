// Snapshots: isolation, files and deletions, the overlay, lookups, and scans of key ranges.
#include "kit.hpp"

namespace {

MeruSnapshot *Acquire(MeruHandle *db) {
	MeruSnapshot *s = nullptr;
	OK(meru_snapshot_acquire(db, &s, &err));
	return s;
}

MeruSnapshotInfo Info(MeruSnapshot *s) {
	MeruSnapshotInfo info{};
	OK(meru_snapshot_info(s, &info, &err));
	return info;
}

int64_t Scan(MeruSnapshot *s) {
	ArrowArrayStream stream{};
	OK(meru_scan_arrow(s, nullptr, nullptr, 0, &stream, &err));
	return Drain(stream, nullptr, 65536);
}

int64_t Overlay(MeruSnapshot *s) {
	ArrowArrayStream stream{};
	OK(meru_snapshot_overlay(s, nullptr, 0, &stream, &err));
	return Drain(stream, nullptr, 16384);
}

// What a reader of the files and the overlay counts, against what the snapshot says.
void CheckCounts(MeruSnapshot *s, int64_t live, int64_t in_memory, const char *when) {
	auto info = Info(s);
	int64_t from_files = 0;
	for (uint64_t i = 0; i < info.file_count; i++) {
		MeruFileInfo f{};
		OK(meru_snapshot_file(s, i, &f, &err));
		const uint32_t *positions = nullptr;
		uintptr_t count = 0;
		OK(meru_snapshot_deletes(s, i, &positions, &count, &err));
		for (uintptr_t p = 0; p < count; p++) {
			CHECK(positions[p] < f.rows && (p == 0 || positions[p] > positions[p - 1]), "position %u", positions[p]);
		}
		CHECK(f.deleted == count, "%s: file %d says %llu deleted, has %zu positions", when, int(i),
			  (unsigned long long)f.deleted, size_t(count));
		from_files += int64_t(f.rows) - int64_t(count);
	}
	CHECK(Overlay(s) == in_memory, "%s: the overlay has %lld rows", when, (long long)Overlay(s));
	CHECK(Scan(s) == live, "%s: the scan has %lld rows", when, (long long)Scan(s));
	CHECK(from_files + in_memory == live, "%s: files have %lld live rows", when, (long long)from_files);
	// Exact without rows in memory, else bounds from above.
	bool exact = in_memory == 0 && info.memory_rows == 0;
	CHECK(exact ? int64_t(info.live_rows) == live : int64_t(info.live_rows) >= live, "%s: live_rows %llu, not %lld",
		  when, (unsigned long long)info.live_rows, (long long)live);
	CHECK(int64_t(info.memory_rows) >= in_memory, "%s: memory_rows %llu, not %lld", when,
		  (unsigned long long)info.memory_rows, (long long)in_memory);
}

void CountsAndFiles() {
	auto db = OpenSimple("snap");
	auto s0 = Acquire(db);
	CheckCounts(s0, 0, 0, "empty");
	for (int i = 0; i < 100; i++) {
		PutSimple(db, i, "v", i);
	}
	auto s1 = Acquire(db);
	CheckCounts(s1, 100, 100, "in memory");
	OK(meru_flush(db, &err));
	auto s2 = Acquire(db);
	CheckCounts(s2, 100, 0, "flushed");
	CHECK(Info(s0).memory_rows == 0 && Info(s2).memory_rows == 0, "memory_rows without rows in memory");
	for (int i = 90; i < 110; i++) {
		PutSimple(db, i, "w", i);
		PutSimple(db, i, "w2", i);
	}
	for (int i = 0; i < 10; i++) {
		auto key = I64(i);
		OK(meru_delete(db, &key, 1, nullptr, &err));
	}
	auto key = I64(12345);
	OK(meru_delete(db, &key, 1, nullptr, &err));
	auto s3 = Acquire(db);
	CheckCounts(s3, 100, 20, "overwritten in memory");
	OK(meru_flush(db, &err));
	auto s4 = Acquire(db);
	CheckCounts(s4, 100, 0, "flushed again");
	// the older ones are as they were
	CheckCounts(s0, 0, 0, "empty, later");
	CheckCounts(s1, 100, 100, "in memory, later");
	CheckCounts(s2, 100, 0, "flushed, later");
	CheckCounts(s3, 100, 20, "overwritten, later");
	CHECK(Info(s0).seq <= Info(s1).seq && Info(s1).seq < Info(s3).seq && Info(s2).version > 0, "numbers");
	MeruFileInfo f{}, again{};
	OK(meru_snapshot_file(s4, 0, &f, &err));
	OK(meru_snapshot_file(s4, 0, &again, &err));
	CHECK(f.path && f.path[0] == '/' && f.path == again.path && access(f.path, R_OK) == 0, "path %s", f.path);
	CHECK(f.size > 0 && f.rows > 0 && f.level >= 0 && f.seq_min <= f.seq_max, "file facts");
	CHECK(f.key_min.len > 0 && f.key_max.len > 0 && memcmp(f.key_min.data, f.key_max.data, f.key_min.len) <= 0,
		  "key bounds");
	uintptr_t count;
	const uint32_t *positions;
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "index", meru_snapshot_file(s4, 99, &f, &err));
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "index", meru_snapshot_deletes(s4, 99, &positions, &count, &err));
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "info", meru_snapshot_file(s4, 0, nullptr, &err));
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "positions", meru_snapshot_deletes(s4, 0, nullptr, &count, &err));
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "count", meru_snapshot_deletes(s4, 0, &positions, nullptr, &err));
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "info", meru_snapshot_info(s4, nullptr, &err));
	MeruTableSchema *schema = nullptr;
	OK(meru_snapshot_schema(s4, &schema, &err));
	CHECK(meru_table_schema_column_count(schema) == 3, "schema of a snapshot");
	meru_table_schema_free(schema);
	for (auto s : {s0, s1, s2, s3, s4}) {
		meru_snapshot_release(s);
	}
	meru_snapshot_release(nullptr);
	OK(meru_close_free(db, &err));
}

void StateVersions() {
	auto db = OpenSimple("version");
	auto v = meru_state_version(db);
	auto changed = [&](const char *what) {
		auto now = meru_state_version(db);
		CHECK(now != v, "state version after %s", what);
		v = now;
	};
	PutSimple(db, 1, "a", 1);
	changed("a put");
	PutSimple(db, 1, "b", 1);
	changed("an overwrite");
	auto key = I64(1);
	OK(meru_delete(db, &key, 1, nullptr, &err));
	changed("a delete");
	PutSimple(db, 2, "a", 1);
	changed("a put");
	OK(meru_flush(db, &err));
	changed("a flush");
	CHECK(meru_state_version(db) == v && CountRows(db) == 1 && meru_state_version(db) == v, "reads change nothing");
	OK(meru_close_free(db, &err));
}

void Lookups() {
	auto db = OpenSimple("lookup");
	ArrowSchema schema{};
	MakeSchema({{"id", "l"}}, &schema);
	PutSimple(db, 1, "one", 1.5);
	OK(meru_flush(db, &err));
	PutSimple(db, 2, "two", 2.5);
	auto s = Acquire(db);
	PutSimple(db, 3, "three", 3.5);
	auto get = [&](int64_t id, ArrowArray *out) {
		ArrowArray key{};
		Export(Struct({Fixed<int64_t>({id})}, 1), &key);
		int found = -1;
		int before = arrays_released;
		OK(meru_snapshot_get(s, &key, &schema, &found, out, &err));
		CHECK(!key.release && arrays_released == before + 1, "the key is taken");
		return found;
	};
	for (int64_t id : {1, 2}) {
		ArrowArray row{};
		CHECK(get(id, &row) == 1 && row.release && row.length == 1 && row.n_children == 3, "row %d", int(id));
		CHECK(At<int64_t>(*row.children[0], 0) == id && StringAt(*row.children[1], 0) == (id == 1 ? "one" : "two") &&
				  At<double>(*row.children[2], 0) == double(id) + 0.5,
			  "values of row %d", int(id));
		Release(row);
	}
	ArrowArray untouched{};
	untouched.length = 77;
	CHECK(get(3, &untouched) == 0 && untouched.length == 77, "a row of later");
	CHECK(get(99, &untouched) == 0 && untouched.length == 77, "a key that is not there");
	ArrowArray key{};
	int found = -1;
	Export(Struct({Fixed<int64_t>({1, 2})}, 2), &key);
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "2 rows", meru_snapshot_get(s, &key, &schema, &found, &untouched, &err));
	CHECK(!key.release && found == -1, "taken on an error");
	Export(Struct({Fixed<int64_t>({1})}, 1), &key);
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "found", meru_snapshot_get(s, &key, &schema, nullptr, &untouched, &err));
	Export(Struct({Fixed<int64_t>({1})}, 1), &key);
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "out", meru_snapshot_get(s, &key, &schema, &found, nullptr, &err));
	Export(Struct({Fixed<int64_t>({1})}, 1), &key);
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "snapshot",
				 meru_snapshot_get(nullptr, &key, &schema, &found, &untouched, &err));
	CHECK(!key.release, "taken from a NULL snapshot");
	Release(schema);
	meru_snapshot_release(s);
	OK(meru_close_free(db, &err));
}

// Many keys at once: rows of files and of memory, deleted and absent ones, and a key twice.
void MultiGet() {
	auto db = OpenSimple("multi-get");
	for (int i = 0; i < 50; i++) {
		PutSimple(db, i, "old", i);
	}
	OK(meru_flush(db, &err));
	for (int i = 0; i < 50; i += 5) {
		PutSimple(db, i, "new", i);
	}
	auto gone = I64(7);
	OK(meru_delete(db, &gone, 1, nullptr, &err));
	std::vector<int64_t> ids = {49, 7, 5, 1000, 0, 5, -1, 8};
	std::vector<MeruValue> values;
	std::vector<MeruRow> keys;
	for (auto id : ids) {
		values.push_back(I64(id));
	}
	for (auto &v : values) {
		keys.push_back({&v, 1});
	}
	MeruScanResult *result = nullptr;
	OK(meru_multi_get(db, keys.data(), keys.size(), &result, &err));
	CHECK(result->count == ids.size(), "%zu entries", size_t(result->count));
	for (size_t i = 0; i < ids.size(); i++) {
		auto &row = result->entries[i];
		bool there = ids[i] >= 0 && ids[i] < 50 && ids[i] != 7;
		CHECK((row.fields != nullptr) == there && row.field_count == (there ? 3u : 0u), "key %lld", (long long)ids[i]);
		auto want = std::string(ids[i] % 5 ? "old" : "new");
		if (there) {
			auto &text = row.fields[1].inner.v_bytes;
			CHECK(row.fields[0].inner.v_int64 == ids[i] && row.fields[2].inner.v_double == double(ids[i]) &&
					  std::string(reinterpret_cast<const char *>(text.data), text.len) == want,
				  "row of key %lld", (long long)ids[i]);
		}
	}
	meru_scan_result_free(result);
	OK(meru_multi_get(db, nullptr, 0, &result, &err));
	CHECK(result->count == 0, "%zu entries for no keys", size_t(result->count));
	meru_scan_result_free(result);
	result = nullptr;
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "keys", meru_multi_get(db, nullptr, 1, &result, &err));
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "result", meru_multi_get(db, keys.data(), 1, nullptr, &err));
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "db", meru_multi_get(nullptr, keys.data(), 1, &result, &err));
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "n", meru_multi_get(db, keys.data(), UINTPTR_MAX, &result, &err));
	MeruRow two = {values.data(), 2}, none = {nullptr, 0};
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "keys", meru_multi_get(db, &two, 1, &result, &err));
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "keys", meru_multi_get(db, &none, 1, &result, &err));
	CHECK(result == nullptr, "an output after an error");
	CHECK(Stat(db, "multi_gets") == 2 && Stat(db, "gets") == (long long)ids.size() && Stat(db, "get_hits") == 5,
		  "counters: %lld multi-gets, %lld keys, %lld hits", Stat(db, "multi_gets"), Stat(db, "gets"),
		  Stat(db, "get_hits"));
	OK(meru_close_free(db, &err));
}

// A stream and its batches outlive the snapshot and the database handle.
void StreamsOutlive() {
	auto db = OpenSimple("outlive");
	for (int i = 0; i < 50; i++) {
		PutSimple(db, i, "file", i);
	}
	OK(meru_flush(db, &err));
	for (int i = 50; i < 80; i++) {
		PutSimple(db, i, "memory", i);
	}
	auto s = Acquire(db);
	ArrowArrayStream scan{}, overlay{}, dropped{};
	OK(meru_scan_arrow(s, nullptr, nullptr, 0, &scan, &err));
	OK(meru_snapshot_overlay(s, nullptr, 0, &overlay, &err));
	OK(meru_scan_arrow(s, nullptr, nullptr, 0, &dropped, &err));
	meru_snapshot_release(s);
	OK(meru_drop_table(db, &err));
	OK(meru_close_free(db, &err));
	ArrowSchema types{};
	CHECK(scan.get_schema(&scan, &types) == 0 && types.n_children == 3, "get_schema");
	Release(types);
	ArrowArray kept{};
	CHECK(overlay.get_next(&overlay, &kept) == 0 && kept.length == 30, "overlay");
	ArrowArray end{};
	CHECK(overlay.get_next(&overlay, &end) == 0 && !end.release && !overlay.get_last_error(&overlay), "its end");
	CHECK(overlay.get_next(&overlay, &end) == 0 && !end.release, "its end again");
	Release(overlay);
	CHECK(StringAt(*kept.children[1], 0) == "memory" && At<int64_t>(*kept.children[0], 29) == 79, "a kept batch");
	Release(kept);
	CHECK(Drain(scan) == 80, "scan");
	Release(dropped); // never read
}

void Projections() {
	auto db = OpenSimple("project");
	for (int i = 0; i < 10; i++) {
		PutSimple(db, i, "x", i * 2);
		if (i == 4) {
			OK(meru_flush(db, &err));
		}
	}
	auto s = Acquire(db);
	uint32_t columns[3] = {2, 0, 2};
	for (bool overlay : {false, true}) {
		ArrowArrayStream stream{};
		auto open = [&](const uint32_t *c, uintptr_t n) {
			return overlay ? meru_snapshot_overlay(s, c, n, &stream, nullptr)
						   : meru_scan_arrow(s, nullptr, c, n, &stream, nullptr);
		};
		CHECK(open(columns, 3) == 0, "open");
		ArrowSchema types{};
		CHECK(stream.get_schema(&stream, &types) == 0 && types.n_children == 3, "schema");
		CHECK(std::string(types.children[0]->name) == "d" && std::string(types.children[1]->name) == "id", "names");
		Release(types);
		int64_t rows = Drain(stream, [&](const ArrowArray &a) {
			CHECK(a.n_children == 3, "children");
			for (int64_t i = 0; i < a.length; i++) {
				auto id = At<int64_t>(*a.children[1], i);
				CHECK(At<double>(*a.children[0], i) == double(id) * 2 &&
						  At<double>(*a.children[2], i) == double(id) * 2,
					  "row");
			}
		});
		CHECK(rows == (overlay ? 5 : 10), "%lld rows", (long long)rows);
		CHECK(open(columns, 0) == 0, "no columns"); // columns is not NULL: none, not all
		rows = Drain(stream, [](const ArrowArray &a) { CHECK(a.n_children == 0, "children"); });
		CHECK(rows == (overlay ? 5 : 10), "%lld rows without columns", (long long)rows);
		uint32_t bad = 3;
		CHECK(open(&bad, 1) == MeruStatus_ErrInvalidArg, "a column that is not there");
		CHECK(open(nullptr, 1) == MeruStatus_ErrInvalidArg, "NULL columns with a count");
	}
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "out", meru_scan_arrow(s, nullptr, nullptr, 0, nullptr, &err));
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "out", meru_snapshot_overlay(s, nullptr, 0, nullptr, &err));
	meru_snapshot_release(s);
	OK(meru_close_free(db, &err));
}

// (a, b) from (0,0) to (9,9), part in a file, part in memory.
MeruHandle *OpenGrid() {
	auto db = Open(In("grid"));
	auto schema = BuildSchema("grid", {{"b", MeruColumnType_Utf8}, {"a", MeruColumnType_Int32}}, {1, 0});
	OK(meru_create_table(db, schema, &err));
	meru_table_schema_free(schema);
	for (int i = 0; i < 100; i++) {
		int n = (i * 37) % 100; // in no order
		auto b = std::to_string(n % 10);
		MeruValue f[2] = {Bytes(b), I32(n / 10)};
		MeruRow row = {f, 2};
		OK(meru_put(db, &row, nullptr, &err));
		if (i == 60) {
			OK(meru_flush(db, &err));
		}
	}
	return db;
}

void Ranges() {
	auto db = OpenGrid();
	auto s = Acquire(db);
	auto rows_of = [&](MeruScanRange r) {
		ArrowArrayStream stream{};
		OK(meru_scan_arrow(s, &r, nullptr, 0, &stream, &err));
		std::vector<int> out;
		Drain(stream, [&](const ArrowArray &a) {
			for (int64_t i = 0; i < a.length; i++) {
				out.push_back(At<int32_t>(*a.children[1], i) * 10 + atoi(StringAt(*a.children[0], i).c_str()));
			}
		});
		for (size_t i = 1; i < out.size(); i++) {
			CHECK(out[i] == out[i - 1] + (r.reverse ? -1 : 1), "order: %d after %d", out[i], out[i - 1]);
		}
		return out;
	};
	auto span = [&](MeruScanRange r, int first, int last) {
		auto rows = rows_of(r);
		CHECK(int(rows.size()) == last - first + 1 && (rows.empty() || (rows.front() == first && rows.back() == last)),
			  "%d to %d: %zu rows from %d", first, last, rows.size(), rows.empty() ? -1 : rows.front());
	};
	MeruValue l[2] = {I32(3), Text("5")}, u[2] = {I32(7), Text("2")};
	span({}, 0, 99);
	for (int le = 0; le < 2; le++) {
		for (int ue = 0; ue < 2; ue++) {
			span({l, 2, uint8_t(le), u, 2, uint8_t(ue), 0, 0}, 35 + le, 72 - ue);
			span({l, 1, uint8_t(le), u, 1, uint8_t(ue), 0, 0}, le ? 40 : 30, ue ? 69 : 79); // prefixes
			span({l, 2, uint8_t(le), nullptr, 0, uint8_t(ue), 0, 0}, 35 + le, 99);
			span({nullptr, 0, uint8_t(le), u, 1, uint8_t(ue), 0, 0}, 0, ue ? 69 : 79);
			span({l, 2, uint8_t(le), l, 2, uint8_t(ue), 0, 0}, 35, le || ue ? 34 : 35);
		}
	}
	span({u, 2, 0, l, 2, 0, 0, 0}, 0, -1); // the wrong way round
	span({l, 2, 0, nullptr, 0, 0, 0, 7}, 35, 41);
	span({nullptr, 0, 0, nullptr, 0, 0, 0, 1}, 0, 0);
	span({nullptr, 0, 0, nullptr, 0, 0, 0, UINT64_MAX}, 0, 99);
	auto down = [&](MeruScanRange r, int first, int last) {
		r.reverse = 1;
		auto rows = rows_of(r);
		CHECK(int(rows.size()) == first - last + 1 && rows.front() == first && rows.back() == last,
			  "%d down to %d: %zu rows", first, last, rows.size());
	};
	down({}, 99, 0);
	down({l, 2, 1, u, 2, 1, 0, 0}, 71, 36);
	down({l, 1, 0, u, 1, 0, 0, 5}, 79, 75);
	auto overlay_of = [&](MeruScanRange r) { // 39 rows are in memory: those of i from 61 to 99
		ArrowArrayStream stream{};
		OK(meru_snapshot_overlay_range(s, &r, nullptr, 0, &stream, &err));
		return Drain(stream, nullptr, 16384);
	};
	int64_t half = overlay_of({nullptr, 0, 0, l, 2, 1, 0, 0}), rest = overlay_of({l, 2, 0, nullptr, 0, 0, 0, 0});
	CHECK(half > 0 && rest > 0 && half + rest == 39, "%lld and %lld rows in memory", (long long)half, (long long)rest);
	CHECK(overlay_of({l, 2, 0, nullptr, 0, 0, 1, 3}) == 3, "an overlay with a limit");
	ArrowArrayStream stream{};
	auto bad = [&](const char *about, MeruScanRange r) {
		EXPECT_ABOUT(MeruStatus_ErrInvalidArg, about, meru_scan_arrow(s, &r, nullptr, 0, &stream, &err));
	};
	MeruValue three[3] = {I32(1), Text("1"), I32(1)}, null[1] = {Null()};
	bad("range.lower", {three, 3, 0, nullptr, 0, 0, 0, 0});
	bad("range.upper", {nullptr, 0, 0, three, 3, 0, 0, 0});
	bad("range.lower", {nullptr, 1, 0, nullptr, 0, 0, 0, 0});
	bad("\"a\"", {null, 1, 0, nullptr, 0, 0, 0, 0});
	MeruValue text[1] = {Text("3")};
	MeruScanRange mismatch{text, 1, 0, nullptr, 0, 0, 0, 0};
	EXPECT_ABOUT(MeruStatus_ErrSchemaMismatch, "\"a\"", meru_scan_arrow(s, &mismatch, nullptr, 0, &stream, &err));
	meru_snapshot_release(s);
	OK(meru_close_free(db, &err));
}

// Batches of many rows, and an error in the middle of a stream.
void LargeAndBroken() {
	auto db = OpenSimple("large");
	auto schema = SchemaOf(db);
	const int64_t n = 150000;
	for (int64_t at = 0; at < n; at += 50000) {
		ArrowArray rows{};
		Export(SimpleRows(at, 50000), &rows);
		OK(meru_put_arrow(db, &rows, &schema, nullptr, &err));
	}
	Release(schema);
	auto s = Acquire(db);
	CHECK(Overlay(s) == n && Scan(s) == n, "in memory");
	meru_snapshot_release(s);
	OK(meru_flush(db, &err));
	s = Acquire(db);
	CHECK(Overlay(s) == 0 && Scan(s) == n, "in files");
	MeruFileInfo f{};
	OK(meru_snapshot_file(s, 0, &f, &err));
	std::string path = f.path;
	meru_snapshot_release(s);
	OK(meru_close_free(db, &err));
	// damage in the middle of the data
	FILE *file = fopen(path.c_str(), "r+b");
	CHECK(file, "%s", path.c_str());
	fseek(file, 0, SEEK_END);
	long size = ftell(file);
	std::string junk(4096, '\x5a');
	fseek(file, size / 3, SEEK_SET);
	fwrite(junk.data(), 1, junk.size(), file);
	fclose(file);
	OK(meru_open_existing(In("large").c_str(), 1, nullptr, &db, &err));
	s = Acquire(db);
	ArrowArrayStream stream{};
	char *err = nullptr;
	int status = meru_scan_arrow(s, nullptr, nullptr, 0, &stream, &err);
	std::string text = err ? err : "";
	meru_free_string(err);
	if (status == 0) {
		ArrowArray a{};
		int code = 0;
		while ((code = stream.get_next(&stream, &a)) == 0 && a.release) {
			Release(a);
		}
		const char *last = stream.get_last_error(&stream);
		CHECK(code != 0 && last && !a.release, "the damage went unseen");
		text = last ? last : "";
		CHECK(stream.get_next(&stream, &a) != 0, "an error is for ever");
		Release(stream);
	} else {
		CHECK(status == MeruStatus_ErrCorruption || status == MeruStatus_ErrParquet, "status %d", status);
	}
	CHECK(text.find(path.substr(path.rfind('/') + 1)) != std::string::npos, "the message does not name the file: %s",
		  text.c_str());
	meru_snapshot_release(s);
	meru_free(db);
}

// Batches end early where rows are large: 65,536 of these would fill the memory, and more than an array can hold.
void LargeRows() {
	auto db = OpenSimple("large-rows", {"durability", "os"});
	std::string big(4 << 20, 'x');
	const int n = 24;
	for (int i = 0; i < n; i++) {
		big[size_t(i)] = 'y';
		MeruValue f[3] = {I64(i), Bytes(big), Dbl(i)};
		MeruRow row = {f, 3};
		OK(meru_put(db, &row, nullptr, &err));
	}
	for (int pass = 0; pass < 2; pass++) {
		auto s = Acquire(db);
		ArrowArrayStream stream{};
		OK(meru_scan_arrow(s, nullptr, nullptr, 0, &stream, &err));
		int batches = 0;
		int64_t rows = Drain(stream, [&](const ArrowArray &a) {
			batches++;
			CHECK(a.length <= 16, "a batch of %lld large rows", (long long)a.length);
			for (int64_t i = 0; i < a.length; i++) {
				CHECK(StringAt(*a.children[1], i).size() == big.size(), "row %lld", (long long)i);
			}
		});
		CHECK(rows == n && batches > 1, "%lld rows in %d batches", (long long)rows, batches);
		meru_snapshot_release(s);
		OK(meru_flush(db, &err));
	}
	OK(meru_close_free(db, &err));
}

} // namespace

void SnapshotCases() {
	check_run("counts, files and deletions", CountsAndFiles);
	check_run("state versions", StateVersions);
	check_run("lookups", Lookups);
	check_run("many lookups at once", MultiGet);
	check_run("streams outlive their snapshot", StreamsOutlive);
}

void ScanCases() {
	check_run("projections", Projections);
	check_run("key ranges", Ranges);
	check_run("large and broken", LargeAndBroken);
	check_run("large rows", LargeRows);
}
