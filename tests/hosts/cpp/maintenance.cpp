// Inspection, compaction and garbage.
#include <map>

#include "kit.hpp"

namespace {

int64_t NumberAt(const ArrowArray &a, int64_t i) {
	return static_cast<const int64_t *>(a.buffers[1])[a.offset + i];
}

// The rows of meru_inspect(), one callback a row.
int64_t Inspect(MeruHandle *db, const char *what, const std::function<void(const ArrowArray &, int64_t)> &fn) {
	ArrowArrayStream stream{};
	OK(meru_inspect(db, what, &stream, &err));
	if (!stream.release) {
		return -1;
	}
	return Drain(stream, [&](const ArrowArray &a) {
		for (int64_t i = 0; i < a.length; i++) {
			fn(a, i);
		}
	});
}

int64_t Files(MeruHandle *db) {
	return Inspect(db, "files", [](const ArrowArray &, int64_t) {});
}

void Inspection() {
	auto db = OpenSimple("inspect", {"memtable_bytes", "2MiB", "auto_compaction", "false"});
	PutSimple(db, 1, "one", 1);
	OK(meru_flush(db, &err));
	PutSimple(db, 2, "two", 2);
	OK(meru_flush(db, &err));
	std::map<std::string, std::string> options;
	Inspect(db, "options", [&](const ArrowArray &a, int64_t i) {
		options[StringAt(*a.children[0], i)] =
			StringAt(*a.children[1], i) + (BoolAt(*a.children[2], i) ? " sticks" : "");
	});
	CHECK(options["memtable_bytes"] == "2097152 sticks", "%s", options["memtable_bytes"].c_str());
	CHECK(options["auto_compaction"] == "false sticks", "%s", options["auto_compaction"].c_str());
	CHECK(options["durability"] == "sync", "%s", options["durability"].c_str());
	std::map<std::string, int64_t> stats;
	Inspect(db, "stats",
			[&](const ArrowArray &a, int64_t i) { stats[StringAt(*a.children[0], i)] = NumberAt(*a.children[1], i); });
	CHECK(stats["data_files"] == 2 && stats["rows_written"] == 2 && stats["handles.database"] >= 1 &&
			  stats["runtime.goroutines"] > 0,
		  "%zu statistics", stats.size());
	CHECK(stats["seq"] == Stat(db, "seq"), "as in the JSON");
	std::string keys;
	int64_t rows = 0;
	Inspect(db, "files", [&](const ArrowArray &a, int64_t i) {
		CHECK(access(StringAt(*a.children[0], i).c_str(), F_OK) == 0, "the file is there");
		rows += NumberAt(*a.children[2], i);
		keys += StringAt(*a.children[7], i) + "-" + StringAt(*a.children[8], i) + " ";
	});
	CHECK(rows == 2 && (keys == "1-1 2-2 " || keys == "2-2 1-1 "), "%lld rows, keys %s", (long long)rows, keys.c_str());
	std::string jobs;
	Inspect(db, "versions", [&](const ArrowArray &a, int64_t i) {
		CHECK(NumberAt(*a.children[1], i) > 1'600'000'000'000'000, "the time of the commit");
		jobs += StringAt(*a.children[2], i) + " ";
	});
	CHECK(jobs == "create flush flush ", "%s", jobs.c_str());
	ArrowArrayStream stream{};
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "what", meru_inspect(db, "everything", &stream, &err));
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "what", meru_inspect(db, nullptr, &stream, &err));
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "out", meru_inspect(db, "stats", nullptr, &err));
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "db", meru_inspect(nullptr, "stats", &stream, &err));
	OK(meru_close_free(db, &err));
	// A database without a table has no files and no versions.
	db = Open(In("inspect-empty"));
	CHECK(Files(db) == 0, "files");
	CHECK(Inspect(db, "versions", [](const ArrowArray &, int64_t) {}) == 0, "versions");
	OK(meru_close_free(db, &err));
}

void StoredOptions() {
	auto db = OpenSimple("stored", {"l0_files", "7", "durability", "os"});
	OK(meru_close_free(db, &err));
	db = Open(In("stored"));
	std::string found;
	Inspect(db, "options", [&](const ArrowArray &a, int64_t i) {
		auto name = StringAt(*a.children[0], i);
		if (name == "l0_files" || name == "durability") {
			found += name + "=" + StringAt(*a.children[1], i) + " ";
		}
	});
	CHECK(found == "durability=sync l0_files=7 ", "%s", found.c_str());
	OK(meru_close_free(db, &err));
	auto o = meru_options_new();
	OK(meru_options_set(o, "l0_slow_files", "6", &err));
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "OPTIONS", meru_open_with(In("stored").c_str(), o, &db, &err));
	meru_options_free(o);
}

int Always(void *asked) {
	++*static_cast<int *>(asked);
	return 1;
}

int Never(void *asked) {
	++*static_cast<int *>(asked);
	return 0;
}

// Ten files of a thousand rows each, every second row replaced.
MeruHandle *TenFiles(const std::string &name) {
	auto db = OpenSimple(name, {"auto_compaction", "false", "retain_versions", "1", "gc_grace_secs", "0"});
	auto schema = SchemaOf(db);
	for (int i = 0; i < 10; i++) {
		ArrowArray rows;
		Export(SimpleRows(i * 500, 1000), &rows);
		OK(meru_put_arrow(db, &rows, &schema, nullptr, &err));
		OK(meru_flush(db, &err));
	}
	Release(schema);
	CHECK(Files(db) == 10, "%lld files", (long long)Files(db));
	return db;
}

void Compaction() {
	auto db = TenFiles("compact");
	int asked = 0;
	auto before = CountRows(db);
	MeruSnapshot *snapshot = nullptr;
	OK(meru_snapshot_acquire(db, &snapshot, &err));
	EXPECT(MeruStatus_ErrCancelled, meru_compact_range(db, nullptr, 0, nullptr, 0, Always, &asked, &err));
	CHECK(asked > 0 && CountRows(db) == before, "asked %d times", asked);
	auto low = I64(0), high = I64(999);
	OK(meru_compact_range(db, &low, 1, &high, 1, nullptr, nullptr, &err));
	auto part = Files(db);
	CHECK(part > 1 && part < 10 && CountRows(db) == before, "%lld files", (long long)part);
	PutSimple(db, 1, "newer", 1); // in memory only
	asked = 0;
	OK(meru_compact_range(db, nullptr, 0, nullptr, 0, Never, &asked, &err));
	CHECK(asked > 0, "asked %d times", asked);
	CHECK(Files(db) == 1 && CountRows(db) == before, "%lld files", (long long)Files(db));
	Inspect(db, "files", [&](const ArrowArray &a, int64_t i) {
		CHECK(NumberAt(*a.children[2], i) == before && NumberAt(*a.children[3], i) == 0, "rows and deleted rows");
	});
	// The snapshot from before has its files still.
	ArrowArrayStream stream{};
	OK(meru_scan_arrow(snapshot, nullptr, nullptr, 0, &stream, &err));
	CHECK(Drain(stream) == before, "rows of the snapshot");
	meru_snapshot_release(snapshot);
	OK(meru_compact(db, &err));
	CHECK(Files(db) == 1, "nothing to do");
	auto text = Text("x");
	EXPECT_ABOUT(MeruStatus_ErrSchemaMismatch, "\"id\"",
				 meru_compact_range(db, &text, 1, nullptr, 0, nullptr, nullptr, &err));
	MeruValue two[2] = {I64(1), I64(2)};
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "lower", meru_compact_range(db, two, 2, nullptr, 0, nullptr, nullptr, &err));
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "db", meru_compact(nullptr, &err));
	OK(meru_close(db, &err));
	EXPECT(MeruStatus_ErrClosed, meru_compact(db, &err));
	meru_free(db);
	db = Open(In("compact"), {"read_only", "true"});
	EXPECT(MeruStatus_ErrReadOnly, meru_compact(db, &err));
	EXPECT(MeruStatus_ErrReadOnly, meru_collect_garbage(db, 0, nullptr, &err));
	meru_free(db);
}

void Garbage() {
	auto db = TenFiles("garbage");
	OK(meru_compact(db, &err));
	auto stray = In("garbage") + "/data/L0/notes.txt";
	auto file = fopen(stray.c_str(), "w");
	CHECK(file, "stray file");
	fclose(file);
	// A dry run removes nothing and says so.
	ArrowArrayStream stream{};
	std::map<std::string, std::string> found;
	auto collect = [&](const ArrowArray &a) {
		for (int64_t i = 0; i < a.length; i++) {
			auto path = StringAt(*a.children[0], i);
			auto removed = BoolAt(*a.children[3], i);
			found[path] = StringAt(*a.children[2], i);
			CHECK((access(path.c_str(), F_OK) == 0) != removed, "%s: removed %d", path.c_str(), removed);
		}
	};
	OK(meru_collect_garbage(db, 1, &stream, &err));
	Drain(stream, collect);
	CHECK(found[stray] == "unknown", "%s", found[stray].c_str());
	found.clear();
	OK(meru_collect_garbage(db, 0, &stream, &err));
	Drain(stream, collect);
	CHECK(found.count(stray) == 1 && access(stray.c_str(), F_OK) == 0, "what is not ours stays");
	OK(meru_collect_garbage(db, 0, nullptr, &err));
	CHECK(CountRows(db) == 5500, "%lld rows", (long long)CountRows(db));
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "db", meru_collect_garbage(nullptr, 0, nullptr, &err));
	OK(meru_close_free(db, &err));
}

} // namespace

void MaintenanceCases() {
	check_run("what there is to know", Inspection);
	check_run("options that stick", StoredOptions);
	check_run("compaction", Compaction);
	check_run("garbage", Garbage);
}
