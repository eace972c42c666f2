#include "kit.hpp"

#include <sys/wait.h>

std::string test_dir;

bool SameValue(const MeruValue &a, const MeruValue &b) {
	if (a.tag != b.tag || (a.is_null != 0) != (b.is_null != 0)) {
		return false;
	}
	if (a.is_null) {
		return true;
	}
	switch (a.tag) {
	case MeruColumnType_Boolean:
		return a.inner.v_bool == b.inner.v_bool;
	case MeruColumnType_Int8:
	case MeruColumnType_Int16:
	case MeruColumnType_Int32:
	case MeruColumnType_Date:
		return a.inner.v_int32 == b.inner.v_int32;
	case MeruColumnType_Float:
		return memcmp(&a.inner.v_float, &b.inner.v_float, 4) == 0;
	case MeruColumnType_Double:
		return memcmp(&a.inner.v_double, &b.inner.v_double, 8) == 0;
	case MeruColumnType_Int128:
	case MeruColumnType_UInt128:
	case MeruColumnType_Decimal:
	case MeruColumnType_Interval:
	case MeruColumnType_Uuid:
		return memcmp(&a.inner, &b.inner, 16) == 0;
	case MeruColumnType_ByteArray:
	case MeruColumnType_FixedLenBytes:
	case MeruColumnType_Utf8:
	case MeruColumnType_Bit:
		return a.inner.v_bytes.len == b.inner.v_bytes.len &&
			   (a.inner.v_bytes.len == 0 ||
				memcmp(a.inner.v_bytes.data, b.inner.v_bytes.data, a.inner.v_bytes.len) == 0);
	default:
		return a.inner.v_int64 == b.inner.v_int64;
	}
}

MeruTableSchema *BuildSchema(const char *table, const std::vector<Col> &columns, const std::vector<uintptr_t> &key) {
	auto schema = meru_table_schema_new(table);
	CHECK(schema, "meru_table_schema_new(%s)", table);
	for (auto &c : columns) {
		MeruColumnInfo info{};
		info.name = c.name;
		info.type = c.type;
		info.precision = c.precision;
		info.scale = c.scale;
		info.fixed_byte_len = c.width;
		info.nullable = c.nullable;
		info.default_sql = c.default_sql;
		info.labels = c.labels.data();
		info.label_count = c.labels.size();
		OK(meru_table_schema_add_column(schema, &info, &err));
	}
	for (auto k : key) {
		OK(meru_table_schema_add_key(schema, k, &err));
	}
	return schema;
}

MeruHandle *Open(const std::string &path, const std::vector<const char *> &options) {
	auto o = meru_options_new();
	for (size_t i = 0; i + 1 < options.size(); i += 2) {
		OK(meru_options_set(o, options[i], options[i + 1], &err));
	}
	MeruHandle *db = nullptr;
	OK(meru_open_with(path.c_str(), o, &db, &err));
	meru_options_free(o);
	return db;
}

MeruHandle *OpenSimple(const std::string &name, const std::vector<const char *> &options) {
	auto db = Open(In(name), options);
	auto schema = BuildSchema(
		"simple", {{"id", MeruColumnType_Int64}, {"s", MeruColumnType_Utf8}, {"d", MeruColumnType_Double}}, {0});
	OK(meru_create_table(db, schema, &err));
	meru_table_schema_free(schema);
	return db;
}

void PutSimple(MeruHandle *db, int64_t id, const char *s, double d) {
	MeruValue f[3] = {I64(id), Text(s), Dbl(d)};
	MeruRow row{f, 3};
	OK(meru_put(db, &row, nullptr, &err));
}

Node SimpleRows(int64_t first, int64_t n) {
	std::vector<int64_t> ids;
	std::vector<std::string> texts;
	std::vector<double> doubles;
	for (int64_t i = first; i < first + n; i++) {
		ids.push_back(i);
		texts.push_back("s" + std::to_string(i));
		doubles.push_back(double(i) / 2);
	}
	return Struct({Fixed(ids), Strings<int32_t>(texts), Fixed(doubles)}, size_t(n));
}

ArrowSchema SchemaOf(MeruHandle *db) {
	ArrowSchema out{};
	MeruTableSchema *schema = nullptr;
	OK(meru_table_schema_get(db, &schema, &err));
	OK(meru_arrow_schema(schema, &out, &err));
	meru_table_schema_free(schema);
	return out;
}

int64_t CountRows(MeruHandle *db) {
	MeruSnapshot *snap = nullptr;
	OK(meru_snapshot_acquire(db, &snap, &err));
	ArrowArrayStream stream{};
	uint32_t none = 0;
	OK(meru_scan_arrow(snap, nullptr, &none, 0, &stream, &err));
	meru_snapshot_release(snap);
	return Drain(stream);
}

int64_t Drain(ArrowArrayStream &stream, const std::function<void(const ArrowArray &)> &fn, int64_t batch_max) {
	int64_t rows = 0;
	for (;;) {
		ArrowArray a{};
		int status = stream.get_next(&stream, &a);
		if (status != 0) {
			CHECK(false, "get_next: %d: %s", status, stream.get_last_error(&stream));
			rows = -1;
			break;
		}
		if (!a.release) {
			break;
		}
		CHECK(a.length > 0 && (batch_max == 0 || a.length <= batch_max), "a batch of %lld rows", (long long)a.length);
		rows += a.length;
		if (fn) {
			fn(a);
		}
		a.release(&a);
		CHECK(!a.release, "release left its mark");
	}
	stream.release(&stream);
	CHECK(!stream.release, "the stream's release left its mark");
	return rows;
}

long long Stat(MeruHandle *db, const char *name) {
	char *json = nullptr;
	OK(meru_stats_json(db, &json, &err));
	std::string text = json ? json : "";
	meru_free_string(json);
	auto at = text.find("\"" + std::string(name) + "\":");
	return at == std::string::npos ? -1 : atoll(text.c_str() + at + strlen(name) + 3);
}

int InChild(const std::function<int()> &fn) {
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		alarm(60); // a hang is a failure
		_exit(fn());
	}
	int status = 0;
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
