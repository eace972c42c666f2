/* What the cases of client.c share: the table, values, and expectations. */
#ifndef FIRST_KIT_H
#define FIRST_KIT_H

#include <stddef.h>

#ifdef OUR_HEADER /* a client of the first generation compiles against ours, too */
#include "merutable.h"
#else
#include "first.h"
#endif
#include "../check.h"

/* Weak, so that this client links where it is missing. */
__attribute__((weak)) int meru_export_iceberg(MeruHandle *, const char *, char **);

static char dir[512];
static const char *self;

static const char *in(const char *name) {
	static char paths[8][1024];
	static int turn;
	char *p = paths[turn++ % 8];
	snprintf(p, sizeof paths[0], "%s/%s", dir, name);
	return p;
}

/* Expects a status; a failure must bring a message, a success none. */
#define EXPECT(status, call)                                                                                           \
	do {                                                                                                               \
		char *err = (char *)"untouched";                                                                               \
		int status_ = (call);                                                                                          \
		CHECK(status_ == (status), "status %d: %s", status_, err ? err : "no message");                                \
		CHECK((status_ == MeruStatus_Ok) == (err == NULL), "status %d with message %s", status_, err ? err : "NULL");  \
		if (err) {                                                                                                     \
			CHECK(*err, "the message is empty");                                                                       \
			meru_free_string(err);                                                                                     \
		}                                                                                                              \
	} while (0)

/* Expects an error whose message names something. */
#define EXPECT_ABOUT(status, about, call)                                                                              \
	do {                                                                                                               \
		char *err = NULL;                                                                                              \
		int status_ = (call);                                                                                          \
		CHECK(status_ == (status), "status %d: %s", status_, err ? err : "no message");                                \
		CHECK(err &&strstr(err, about), "the message does not name %s: %s", about, err ? err : "NULL");                \
		meru_free_string(err);                                                                                         \
	} while (0)

static MeruValue v_null(MeruColumnType t) {
	MeruValue v;
	memset(&v, 0, sizeof v);
	v.tag = t, v.is_null = 1;
	return v;
}
static MeruValue v_bool(int b) {
	MeruValue v = v_null(MeruColumnType_Boolean);
	v.is_null = 0, v.inner.v_bool = (uint8_t)b;
	return v;
}
static MeruValue v_i32(int32_t i) {
	MeruValue v = v_null(MeruColumnType_Int32);
	v.is_null = 0, v.inner.v_int32 = i;
	return v;
}
static MeruValue v_i64(int64_t i) {
	MeruValue v = v_null(MeruColumnType_Int64);
	v.is_null = 0, v.inner.v_int64 = i;
	return v;
}
static MeruValue v_float(float f) {
	MeruValue v = v_null(MeruColumnType_Float);
	v.is_null = 0, v.inner.v_float = f;
	return v;
}
static MeruValue v_double(double f) {
	MeruValue v = v_null(MeruColumnType_Double);
	v.is_null = 0, v.inner.v_double = f;
	return v;
}
static MeruValue v_bytes_of(MeruColumnType t, const void *data, size_t len) {
	MeruValue v = v_null(t);
	v.is_null = 0, v.inner.v_bytes.data = data, v.inner.v_bytes.len = len;
	return v;
}
static MeruValue v_text(const char *s) {
	return v_bytes_of(MeruColumnType_ByteArray, s, strlen(s));
}

static int same_bytes(const MeruValue *v, const void *data, size_t len) {
	return !v->is_null && v->inner.v_bytes.len == len && (!len || !memcmp(v->inner.v_bytes.data, data, len));
}

/* The table of most cases: every type; the key is (k2, k1), which is not the column order. */
enum { columns_all = 9 };
static const uintptr_t key_all[2] = {1, 0};
static MeruColumnDef defs_all[columns_all] = {
	{"k1", MeruColumnType_Int32, 0, 0, NULL, NULL},        {"k2", MeruColumnType_ByteArray, 0, 0, NULL, NULL},
	{"b", MeruColumnType_Boolean, 0, 1, NULL, NULL},       {"i", MeruColumnType_Int32, 0, 1, NULL, NULL},
	{"l", MeruColumnType_Int64, 0, 1, NULL, NULL},         {"f", MeruColumnType_Float, 0, 1, NULL, NULL},
	{"d", MeruColumnType_Double, 0, 1, NULL, NULL},        {"s", MeruColumnType_ByteArray, 0, 1, NULL, NULL},
	{"x", MeruColumnType_FixedLenBytes, 5, 1, NULL, NULL},
};

static MeruOpenOptions options_all(const char *path) {
	MeruOpenOptions o;
	memset(&o, 0, sizeof o);
	o.schema.table_name = "everything";
	o.schema.columns = defs_all;
	o.schema.column_count = columns_all;
	o.schema.primary_key = key_all;
	o.schema.primary_key_len = 2;
	o.catalog_uri = path;
	return o;
}

static MeruHandle *open_all(const char *path, MeruRuntime *runtime) {
	MeruOpenOptions o = options_all(path);
	MeruHandle *db = NULL;
	EXPECT(MeruStatus_Ok, meru_open(&o, runtime, &db, &err));
	return db;
}

static void fill(MeruValue *f, int k1, const char *k2) {
	f[0] = v_i32(k1);
	f[1] = v_text(k2);
	f[2] = v_bool(k1 & 1);
	f[3] = v_i32((int32_t)(0 - (uint32_t)k1));
	f[4] = v_i64((int64_t)k1 * (1LL << 32));
	f[5] = v_float(k1 / 4.0f);
	f[6] = v_double(-(double)k1 / 8.0);
	f[7] = v_bytes_of(MeruColumnType_ByteArray, "a\0b", 3);
	f[8] = v_bytes_of(MeruColumnType_FixedLenBytes, "12345", 5);
}

static void put(MeruHandle *db, int k1, const char *k2) {
	MeruValue f[columns_all];
	fill(f, k1, k2);
	MeruRow row = {f, columns_all};
	EXPECT(MeruStatus_Ok, meru_put(db, &row, NULL, &err));
}

static int has(MeruHandle *db, int k1, const char *k2) {
	MeruValue key[2] = {v_text(k2), v_i32(k1)};
	int found = -1;
	MeruRow *row = (MeruRow *)&found;
	EXPECT(MeruStatus_Ok, meru_get(db, key, 2, &found, &row, &err));
	CHECK(found == 0 || found == 1, "found is %d", found);
	CHECK(found ? row != NULL : row == NULL, "row with found %d", found);
	meru_row_free(row);
	return found;
}

#endif
