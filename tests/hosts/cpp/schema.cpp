// Options, opening, the schema builder, creating and dropping, readers and stale handles.
#include <sys/stat.h>

#include "kit.hpp"

namespace {

void Versions() {
	CHECK(meru_version() && *meru_version() && meru_version() == meru_version(), "version %s", meru_version());
	CHECK(meru_abi_version() == MERU_ABI_MAJOR * 65536u + MERU_ABI_MINOR, "abi %u", meru_abi_version());
}

void Options() {
	auto o = meru_options_new();
	CHECK(o, "options");
	const char *good[][2] = {{"read_only", "false"},
							 {"create_if_missing", "true"},
							 {"durability", "sync"},
							 {"durability", "interval"},
							 {"durability", "os"},
							 {"sync_interval_ms", "60000"},
							 {"memtable_bytes", "4294967296"},
							 {"max_immutables", "64"},
							 {"cache_bytes", "0"},
							 {"retain_versions", "1000000"},
							 {"gc_grace_secs", "604800"},
							 {"wal_dir", "/somewhere"},
							 {"row_cache_bytes", "0"},
							 {"memory_limit", "1GiB"},
							 {"default_memory_limit", "64 MiB"},
							 {"flush_threads", "1"},
							 {"compaction_threads", "64"},
							 {"auto_compaction", "false"},
							 {"l0_files", "1"},
							 {"l0_slow_files", "10"},
							 {"l0_stop_files", "10"},
							 {"pending_slow_bytes", "1GB"},
							 {"pending_stop_bytes", "1GB"},
							 {"target_file_bytes", "1.5MB"},
							 {"base_level_bytes", "10kb"},
							 {"level_multiplier", "2"},
							 {"max_deleted_percent", "100"},
							 {"compaction_rate_bytes", "0"},
							 {"retain_secs", "0"}};
	for (auto &g : good) {
		OK(meru_options_set(o, g[0], g[1], &err));
	}
	const char *bad[][2] = {{"read_only", "maybe"},
							{"create_if_missing", ""},
							{"durability", "never"},
							{"sync_interval_ms", "0"},
							{"memtable_bytes", "1"},
							{"memtable_bytes", "4294967297"},
							{"max_immutables", "65"},
							{"cache_bytes", "-1"},
							{"cache_bytes", "2048 TiB"},
							{"retain_versions", "1000001"},
							{"gc_grace_secs", "604801"},
							{"gc_grace_secs", "1 day"},
							{"memory_limit", "0"},
							{"flush_threads", "0"},
							{"compaction_threads", "65"},
							{"auto_compaction", "2"},
							{"l0_files", "0"},
							{"l0_slow_files", "x"},
							{"l0_stop_files", "-1"},
							{"pending_slow_bytes", "0"},
							{"pending_stop_bytes", "1 PB"},
							{"target_file_bytes", "1KiB"},
							{"base_level_bytes", ""},
							{"level_multiplier", "1"},
							{"max_deleted_percent", "101"},
							{"compaction_rate_bytes", "-1"},
							{"retain_secs", "soon"},
							{"no_such_option", "1"}};
	for (auto &b : bad) {
		EXPECT_ABOUT(MeruStatus_ErrInvalidArg, b[0], meru_options_set(o, b[0], b[1], &err));
	}
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "key", meru_options_set(o, nullptr, "1", &err));
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "value", meru_options_set(o, "read_only", nullptr, &err));
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "options", meru_options_set(nullptr, "read_only", "true", &err));
	MeruHandle *db = nullptr;
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "path", meru_open_with(nullptr, o, &db, &err));
	meru_options_free(o);
	meru_options_free(o);
	meru_options_free(nullptr);
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "options", meru_open_with(In("x").c_str(), o, &db, &err));
	CHECK(!db, "handle");
}

void OptionsWork() {
	MeruHandle *db = nullptr;
	auto o = meru_options_new();
	OK(meru_options_set(o, "create_if_missing", "false", &err));
	EXPECT(MeruStatus_ErrNotFound, meru_open_with(In("opt-none").c_str(), o, &db, &err));
	CHECK(access(In("opt-none").c_str(), F_OK) != 0, "the directory was created");
	OK(meru_options_set(o, "create_if_missing", "true", &err));
	OK(meru_options_set(o, "memtable_bytes", "1048576", &err));
	OK(meru_options_set(o, "wal_dir", In("opt-wal").c_str(), &err));
	OK(meru_options_set(o, "durability", "os", &err));
	OK(meru_options_set(o, "cache_bytes", "12345678", &err));
	OK(meru_open_with(In("opt").c_str(), o, &db, &err));
	auto schema = BuildSchema("t", {{"id", MeruColumnType_Int64}}, {0});
	OK(meru_create_table(db, schema, &err));
	MeruValue v = I64(1);
	MeruRow row = {&v, 1};
	OK(meru_put(db, &row, nullptr, &err));
	MeruStats st{};
	OK(meru_stats(db, &st, &err));
	CHECK(st.memtable.flush_threshold == 1048576 && st.cache.capacity == 12345678, "threshold %zu, cache %zu",
		  size_t(st.memtable.flush_threshold), size_t(st.cache.capacity));
	CHECK(access(In("opt-wal").c_str(), F_OK) == 0 && access((In("opt") + "/wal").c_str(), F_OK) != 0, "wal_dir");
	meru_free(db);
	OK(meru_options_set(o, "read_only", "true", &err));
	EXPECT(MeruStatus_ErrNotFound, meru_open_with(In("opt-none").c_str(), o, &db, &err));
	OK(meru_open_with(In("opt").c_str(), o, &db, &err));
	EXPECT(MeruStatus_ErrReadOnly, meru_put(db, &row, nullptr, &err));
	EXPECT(MeruStatus_ErrReadOnly, meru_create_table(db, schema, &err));
	EXPECT(MeruStatus_ErrReadOnly, meru_drop_table(db, &err));
	MeruWrite *w = nullptr;
	EXPECT(MeruStatus_ErrReadOnly, meru_write_begin(db, &w, &err));
	meru_free(db);
	meru_table_schema_free(schema);
	meru_options_free(o);
	OK(meru_open_with(In("opt-default").c_str(), nullptr, &db, &err));
	meru_free(db);
}

void Builder() {
	auto s = BuildSchema("t \"quoted\" \xe2\x9c\x93",
						 {{"a", MeruColumnType_Int32, true, 0, 0, 0, {}, "41 + 1"},
						  {"select", MeruColumnType_Utf8},
						  {"d", MeruColumnType_Decimal, true, 18, 3}},
						 {1, 0});
	CHECK(std::string(meru_table_schema_name(s)) == "t \"quoted\" \xe2\x9c\x93", "name");
	CHECK(meru_table_schema_column_count(s) == 3 && meru_table_schema_key_count(s) == 2, "counts");
	CHECK(meru_table_schema_key_column(s, 0) == 1 && meru_table_schema_key_column(s, 1) == 0, "key order");
	CHECK(meru_table_schema_key_column(s, 2) == UINTPTR_MAX, "key out of range");
	OK(meru_table_schema_validate(s, &err));
	auto keyless = BuildSchema("t", {{"a", MeruColumnType_Int32}}, {});
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "primary key", meru_table_schema_validate(keyless, &err));
	meru_table_schema_free(keyless);
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "schema", meru_table_schema_validate(nullptr, &err));
	MeruColumnInfo info{};
	OK(meru_table_schema_column(s, 0, &info, &err));
	CHECK(!info.nullable && info.key_position == 1 && std::string(info.default_sql) == "41 + 1", "column a");
	OK(meru_table_schema_column(s, 1, &info, &err));
	CHECK(!info.nullable && info.key_position == 0 && !info.default_sql && !info.labels, "column select");
	OK(meru_table_schema_column(s, 2, &info, &err));
	CHECK(info.nullable && info.key_position == -1 && info.precision == 18 && info.scale == 3, "column d");
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "column_index", meru_table_schema_column(s, 3, &info, &err));
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "info", meru_table_schema_column(s, 0, nullptr, &err));
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "column_index", meru_table_schema_add_key(s, 3, &err));
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "\"a\"", meru_table_schema_add_key(s, 0, &err));
	CHECK(meru_table_schema_check_count(s) == 0 && !meru_table_schema_check(s, 0), "checks of none");
	OK(meru_table_schema_add_check(s, "(a > 0)", &err));
	OK(meru_table_schema_add_check(s, "(d < 1)", &err));
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "sql", meru_table_schema_add_check(s, nullptr, &err));
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "UTF-8", meru_table_schema_add_check(s, "\xff", &err));
	CHECK(meru_table_schema_check_count(s) == 2 && std::string(meru_table_schema_check(s, 1)) == "(d < 1)", "checks");
	CHECK(!meru_table_schema_check(s, 2), "check out of range");
	OK(meru_table_schema_validate(s, &err));
	auto refuse = [&](const char *about, MeruColumnInfo i) {
		EXPECT_ABOUT(MeruStatus_ErrInvalidArg, about, meru_table_schema_add_column(s, &i, &err));
	};
	MeruColumnInfo bad{};
	refuse("info.name", bad);
	bad.name = "x";
	bad.type = MeruColumnType(1000);
	refuse("\"x\"", bad);
	bad.type = MeruColumnType_Decimal;
	bad.precision = 39;
	refuse("\"x\"", bad);
	bad.precision = -1;
	refuse("\"x\"", bad);
	bad.type = MeruColumnType_FixedLenBytes;
	refuse("\"x\"", bad);
	bad.type = MeruColumnType_Enum;
	refuse("\"x\"", bad);
	const char *twice[2] = {"one", "one"};
	bad.labels = twice;
	bad.label_count = 2;
	refuse("one", bad);
	bad.labels = nullptr;
	refuse("labels", bad);
	const char *broken[1] = {"\xff"};
	bad.labels = broken;
	bad.label_count = 1;
	refuse("UTF-8", bad);
	bad.name = "\xc3\x28";
	refuse("UTF-8", bad);
	CHECK(meru_table_schema_column_count(s) == 3, "a refused column was added");
	meru_table_schema_free(s);
	CHECK(!meru_table_schema_name(s) && !meru_table_schema_column_count(s), "a freed schema");
	CHECK(!meru_table_schema_new(nullptr), "a schema without a name");
	CHECK(!meru_table_schema_name(nullptr) && !meru_table_schema_key_count(nullptr) &&
			  meru_table_schema_key_column(nullptr, 0) == UINTPTR_MAX,
		  "NULL schema");
	meru_table_schema_free(nullptr);
}

void CreateAndDrop() {
	auto db = Open(In("create"));
	MeruTableSchema *got = nullptr;
	MeruSnapshot *snap = nullptr;
	MeruWrite *w = nullptr;
	MeruValue one = I64(1);
	MeruRow row = {&one, 1}, *found_row = nullptr;
	int found = 0;
	EXPECT(MeruStatus_ErrNotFound, meru_table_schema_get(db, &got, &err));
	EXPECT(MeruStatus_ErrNotFound, meru_snapshot_acquire(db, &snap, &err));
	EXPECT(MeruStatus_ErrNotFound, meru_write_begin(db, &w, &err));
	EXPECT(MeruStatus_ErrNotFound, meru_put(db, &row, nullptr, &err));
	EXPECT(MeruStatus_ErrNotFound, meru_get(db, &one, 1, &found, &found_row, &err));
	EXPECT(MeruStatus_ErrNotFound, meru_drop_table(db, &err));
	auto refuse = [&](const char *about, const std::vector<Col> &columns, const std::vector<uintptr_t> &key) {
		auto s = BuildSchema("t", columns, key);
		EXPECT_ABOUT(MeruStatus_ErrInvalidArg, about, meru_create_table(db, s, &err));
		meru_table_schema_free(s);
	};
	refuse("primary key", {{"a", MeruColumnType_Int32}}, {});
	refuse("_merutable_seq", {{"a", MeruColumnType_Int32}, {"_merutable_seq", MeruColumnType_Int64}}, {0});
	refuse("\"A\"", {{"a", MeruColumnType_Int32}, {"A", MeruColumnType_Int32}}, {0});
	refuse("columns", {}, {});
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "schema", meru_create_table(db, nullptr, &err));
	auto s = BuildSchema("t", {{"id", MeruColumnType_Int64}}, {0});
	OK(meru_create_table(db, s, &err));
	EXPECT(MeruStatus_ErrAlreadyExists, meru_create_table(db, s, &err));
	meru_table_schema_free(s);
	OK(meru_put(db, &row, nullptr, &err));
	OK(meru_flush(db, &err));
	OK(meru_snapshot_acquire(db, &snap, &err));
	auto before = meru_state_version(db);
	OK(meru_drop_table(db, &err));
	CHECK(meru_state_version(db) != before, "state version at a drop");
	EXPECT(MeruStatus_ErrNotFound, meru_drop_table(db, &err));
	ArrowArrayStream stream{};
	OK(meru_scan_arrow(snap, nullptr, nullptr, 0, &stream, &err));
	CHECK(Drain(stream) == 1, "a snapshot outlives its table");
	meru_snapshot_release(snap);
	OK(meru_close_free(db, &err));
	EXPECT(MeruStatus_ErrNotFound, meru_open_existing(In("create").c_str(), 0, nullptr, &db, &err));
	MeruManifestInfo *info = nullptr;
	EXPECT(MeruStatus_ErrNotFound, meru_manifest_info(nullptr, In("create").c_str(), &info, &err));
	// another table in its place
	db = Open(In("create"));
	s = BuildSchema("u", {{"k", MeruColumnType_Utf8}, {"n", MeruColumnType_Int32}}, {0});
	OK(meru_create_table(db, s, &err));
	meru_table_schema_free(s);
	CHECK(CountRows(db) == 0, "rows of the old table");
	OK(meru_close_free(db, &err));
	OK(meru_open_existing(In("create").c_str(), 0, nullptr, &db, &err));
	OK(meru_table_schema_get(db, &got, &err));
	CHECK(std::string(meru_table_schema_name(got)) == "u" && meru_table_schema_column_count(got) == 2, "the new table");
	meru_table_schema_free(got);
	OK(meru_close_free(db, &err));
}

void Readers() {
	auto db = OpenSimple("readers");
	PutSimple(db, 1, "one", 1);
	MeruHandle *r = nullptr, *r2 = nullptr;
	OK(meru_open_reader(In("readers").c_str(), &r, &err));
	CHECK(CountRows(r) == 1, "a reader shares the writer's engine");
	auto before = meru_state_version(r);
	PutSimple(db, 2, "two", 2);
	CHECK(meru_state_version(r) != before && CountRows(r) == 2, "at once");
	EXPECT(MeruStatus_ErrReadOnly, meru_flush(r, &err));
	MeruValue key = I64(1);
	EXPECT(MeruStatus_ErrReadOnly, meru_delete(r, &key, 1, nullptr, &err));
	OK(meru_close_free(r, &err));
	PutSimple(db, 3, "three", 3);
	OK(meru_close_free(db, &err));
	// without a writer: read-only engines, kept when idle
	OK(meru_reader_cache_set(2, &err));
	OK(meru_open_reader(In("readers").c_str(), &r, &err));
	OK(meru_open_reader(In("readers").c_str(), &r2, &err));
	CHECK(CountRows(r) == 3 && CountRows(r2) == 3, "rows");
	meru_free(r);
	meru_free(r2);
	OK(meru_open_reader(In("readers").c_str(), &r, &err));
	CHECK(CountRows(r) == 3, "from the cache");
	// a writer beside it
	db = Open(In("readers"));
	PutSimple(db, 4, "four", 4);
	OK(meru_refresh(r, &err));
	CHECK(CountRows(r) == 4, "refreshed: %lld", (long long)CountRows(r));
	meru_free(r);
	OK(meru_reader_cache_set(0, &err));
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "1024", meru_reader_cache_set(1025, &err));
	EXPECT(MeruStatus_ErrInvalidArg, meru_reader_cache_set(UINTPTR_MAX, &err));
	EXPECT(MeruStatus_ErrNotFound, meru_open_reader(In("no-reader").c_str(), &r, &err));
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "path", meru_open_reader(nullptr, &r, &err));
	OK(meru_reader_cache_set(8, &err));
	OK(meru_close_free(db, &err));
}

// Handles that were freed, are of another kind, or are pointers to something else: errors, never a crash.
void StaleHandles() {
	auto db = OpenSimple("stale");
	MeruSnapshot *snap = nullptr;
	MeruWrite *w = nullptr;
	MeruTableSchema *schema = nullptr;
	OK(meru_snapshot_acquire(db, &snap, &err));
	OK(meru_write_begin(db, &w, &err));
	OK(meru_table_schema_get(db, &schema, &err));
	MeruSnapshotInfo info{};
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "another kind",
				 meru_snapshot_info(reinterpret_cast<MeruSnapshot *>(w), &info, &err));
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "another kind", meru_flush(reinterpret_cast<MeruHandle *>(snap), &err));
	int something = 0;
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "db", meru_flush(reinterpret_cast<MeruHandle *>(&something), &err));
	meru_free(reinterpret_cast<MeruHandle *>(snap));
	OK(meru_snapshot_info(snap, &info, &err));
	meru_snapshot_release(snap);
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "snapshot", meru_snapshot_info(snap, &info, &err));
	meru_snapshot_release(snap);
	meru_write_free(w);
	uint64_t seq = 0;
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "write", meru_write_commit(w, &seq, &err));
	meru_write_set_interrupt(w, nullptr, nullptr);
	meru_write_free(w);
	meru_table_schema_free(schema);
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "schema", meru_create_table(db, schema, &err));
	OK(meru_close_free(db, &err));
	char *json = nullptr;
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "db", meru_stats_json(db, &json, &err));
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "db", meru_snapshot_acquire(db, &snap, &err));
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "db", meru_write_begin(nullptr, &w, &err));
	CHECK(meru_state_version(db) == 0 && meru_state_version(nullptr) == 0 && !meru_catalog_path(db), "the silent ones");
}

#if !defined(__SANITIZE_ADDRESS__) // the sanitizer would stop the program at it
// A bad address in the caller's structs is an error, not a crash of the host.
void BadAddresses() {
	auto db = OpenSimple("address");
	MeruValue f[3] = {I64(1), Text("x"), Dbl(0)};
	f[1].inner.v_bytes = {reinterpret_cast<const uint8_t *>(0x7f0000000010), 4096};
	MeruRow row = {f, 3};
	EXPECT_ABOUT(MeruStatus_ErrUnknown, "internal error", meru_put(db, &row, nullptr, &err));
	row.fields = nullptr;
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "fields", meru_put(db, &row, nullptr, &err));
	PutSimple(db, 1, "x", 0);
	CHECK(CountRows(db) == 1, "it goes on");
	OK(meru_close_free(db, &err));
}
#endif

} // namespace

void SchemaCases() {
	check_run("versions", Versions);
	check_run("options", Options);
	check_run("options at work", OptionsWork);
	check_run("schema builder", Builder);
	check_run("create and drop", CreateAndDrop);
	check_run("readers", Readers);
	check_run("stale handles", StaleHandles);
#if !defined(__SANITIZE_ADDRESS__)
	check_run("bad addresses", BadAddresses);
#endif
}
