// What the cases of the C++ host share: expectations, values, and small owners for the handles.
#pragma once

#include <cmath>
#include <functional>
#include <string>
#include <unistd.h>
#include <vector>

#include "../check.h"
#include "arrow_kit.hpp"
#include "merutable.h"

using namespace arrow_kit;

extern std::string test_dir;

inline std::string In(const std::string &name) {
	return test_dir + "/" + name;
}

// Expects a status from a call that ends with `&err`; returns the message.
#define EXPECT(status, call)                                                                                           \
	do {                                                                                                               \
		char *err = reinterpret_cast<char *>(1);                                                                       \
		int status_ = (call);                                                                                          \
		CHECK(status_ == (status), "status %d: %s", status_, err ? err : "no message");                                \
		CHECK((status_ == 0) == (err == nullptr), "status %d and %s message", status_, err ? "a" : "no");              \
		meru_free_string(err);                                                                                         \
	} while (0)
#define OK(call) EXPECT(MeruStatus_Ok, call)
#define EXPECT_ABOUT(status, about, call)                                                                              \
	do {                                                                                                               \
		char *err = nullptr;                                                                                           \
		int status_ = (call);                                                                                          \
		CHECK(status_ == (status), "status %d: %s", status_, err ? err : "no message");                                \
		CHECK(err &&strstr(err, about), "the message does not name %s: %s", about, err ? err : "NULL");                \
		meru_free_string(err);                                                                                         \
	} while (0)

inline MeruValue Null() {
	MeruValue v{};
	v.is_null = 1;
	return v;
}
inline MeruValue Value(MeruColumnType t) {
	MeruValue v{};
	v.tag = t;
	return v;
}
inline MeruValue I32(int32_t i, MeruColumnType t = MeruColumnType_Int32) {
	auto v = Value(t);
	v.inner.v_int32 = i;
	return v;
}
inline MeruValue I64(int64_t i, MeruColumnType t = MeruColumnType_Int64) {
	auto v = Value(t);
	v.inner.v_int64 = i;
	return v;
}
inline MeruValue U64(uint64_t i, MeruColumnType t = MeruColumnType_UInt64) {
	auto v = Value(t);
	v.inner.v_uint64 = i;
	return v;
}
inline MeruValue I128(uint64_t hi, uint64_t lo, MeruColumnType t = MeruColumnType_Int128) {
	auto v = Value(t);
	v.inner.v_int128 = {lo, hi};
	return v;
}
inline MeruValue Dbl(double d) {
	auto v = Value(MeruColumnType_Double);
	v.inner.v_double = d;
	return v;
}
// The bytes must outlive the value.
inline MeruValue Bytes(const std::string &s, MeruColumnType t = MeruColumnType_Utf8) {
	auto v = Value(t);
	v.inner.v_bytes = {reinterpret_cast<const uint8_t *>(s.data()), s.size()};
	return v;
}
inline MeruValue Text(const char *s, MeruColumnType t = MeruColumnType_Utf8) {
	auto v = Value(t);
	v.inner.v_bytes = {reinterpret_cast<const uint8_t *>(s), strlen(s)};
	return v;
}

bool SameValue(const MeruValue &a, const MeruValue &b);

// A column for MakeTable.
struct Col {
	const char *name;
	MeruColumnType type;
	bool nullable = true;
	int precision = 0, scale = 0, width = 0;
	std::vector<const char *> labels = {};
	const char *default_sql = nullptr;
};

MeruTableSchema *BuildSchema(const char *table, const std::vector<Col> &columns, const std::vector<uintptr_t> &key);

// Opens a directory, with options as key and value in turn; NULL on failure.
MeruHandle *Open(const std::string &path, const std::vector<const char *> &options = {});

// A new database with a table (id BIGINT, s VARCHAR, d DOUBLE; key id).
MeruHandle *OpenSimple(const std::string &name, const std::vector<const char *> &options = {});
void PutSimple(MeruHandle *db, int64_t id, const char *s, double d);
// The rows first..first+n-1: s is "s<id>", d is id / 2.
Node SimpleRows(int64_t first, int64_t n);
// The Arrow schema of a database's table; release it.
ArrowSchema SchemaOf(MeruHandle *db);

int64_t CountRows(MeruHandle *db);

// What a stream held: calls fn for each batch; returns the number of rows, -1 after an error. Releases the stream.
int64_t Drain(ArrowArrayStream &stream, const std::function<void(const ArrowArray &)> &fn = nullptr,
			  int64_t batch_max = 0);

// A number out of the JSON of meru_stats_json(), -1 where there is none.
long long Stat(MeruHandle *db, const char *name);

// Runs fn in a forked child; returns its exit status, or 128 + signal.
int InChild(const std::function<int()> &fn);

void TypeCases();
void SchemaCases();
void AlterCases();
void TableCases();
void NestedCases();
void MaintenanceCases();
void MirrorCases();
void WriteCases();
void TxnCases();
void SnapshotCases();
void ScanCases();
void ThreadCases();
void ProcessCases();
