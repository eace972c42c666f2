/* What a client of the first generation has: its names, values and layouts, written down from the published facts and
 * not from our header. Nothing here may be changed to make a test pass. */
#ifndef FIRST_H
#define FIRST_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum MeruColumnType {
	MeruColumnType_Boolean = 0,
	MeruColumnType_Int32 = 1,
	MeruColumnType_Int64 = 2,
	MeruColumnType_Float = 3,
	MeruColumnType_Double = 4,
	MeruColumnType_ByteArray = 5,
	MeruColumnType_FixedLenBytes = 6
} MeruColumnType;

enum {
	MeruStatus_Ok = 0,
	MeruStatus_ErrIo = 1,
	MeruStatus_ErrCorruption = 2,
	MeruStatus_ErrSchemaMismatch = 3,
	MeruStatus_ErrNotFound = 4,
	MeruStatus_ErrInvalidArg = 5,
	MeruStatus_ErrReadOnly = 6,
	MeruStatus_ErrClosed = 7,
	MeruStatus_ErrObjectStore = 8,
	MeruStatus_ErrParquet = 9,
	MeruStatus_ErrAlreadyExists = 10,
	MeruStatus_ErrUnknown = 99
};

typedef struct {
	const uint8_t *data;
	uintptr_t len;
} MeruBytesView;

typedef union {
	uint8_t v_bool;
	int32_t v_int32;
	int64_t v_int64;
	float v_float;
	double v_double;
	MeruBytesView v_bytes;
} MeruValueInner;

typedef struct {
	MeruColumnType tag;
	uint8_t is_null;
	MeruValueInner inner;
} MeruValue;

typedef struct {
	const char *name;
	MeruColumnType col_type;
	int32_t fixed_byte_len;
	uint8_t nullable;
	const MeruValue *initial_default;
	const MeruValue *write_default;
} MeruColumnDef;

typedef struct {
	const char *table_name;
	const MeruColumnDef *columns;
	uintptr_t column_count;
	const uintptr_t *primary_key;
	uintptr_t primary_key_len;
} MeruSchema;

typedef struct {
	MeruSchema schema;
	const char *catalog_uri;
	const char *wal_dir;
	uintptr_t memtable_size_mb;
	uint8_t read_only;
} MeruOpenOptions;

typedef struct {
	MeruValue *fields;
	uintptr_t field_count;
} MeruRow;

typedef struct {
	MeruRow *entries;
	uintptr_t count;
} MeruScanResult;

typedef struct {
	uintptr_t active_size_bytes;
	uint64_t active_entry_count;
	uintptr_t flush_threshold;
	uintptr_t immutable_count;
} MeruMemtableStats;

typedef struct {
	uintptr_t capacity;
	uintptr_t size;
	uint64_t hit_count;
	uint64_t miss_count;
} MeruCacheStats;

typedef struct {
	int64_t snapshot_id;
	uint64_t current_seq;
	MeruMemtableStats memtable;
	MeruCacheStats cache;
} MeruStats;

typedef struct {
	char *table_name;
	MeruColumnDef *columns;
	uintptr_t column_count;
	uintptr_t *primary_key;
	uintptr_t pk_count;
	char **parquet_paths;
	uintptr_t parquet_count;
} MeruManifestInfo;

typedef struct MeruHandle MeruHandle;
typedef struct MeruRuntime MeruRuntime;

int meru_open(const MeruOpenOptions *, MeruRuntime *, MeruHandle **, char **);
int meru_open_existing(const char *, uint8_t, MeruRuntime *, MeruHandle **, char **);
int meru_close(MeruHandle *, char **);
void meru_free(MeruHandle *);
int meru_close_free(MeruHandle *, char **);
int meru_is_closed(const MeruHandle *);
int meru_put(MeruHandle *, const MeruRow *, uint64_t *, char **);
int meru_put_batch(MeruHandle *, const MeruRow *, uintptr_t, uint64_t *, char **);
int meru_delete(MeruHandle *, const MeruValue *, uintptr_t, uint64_t *, char **);
int meru_get(const MeruHandle *, const MeruValue *, uintptr_t, int *, MeruRow **, char **);
int meru_scan(const MeruHandle *, const MeruValue *, uintptr_t, const MeruValue *, uintptr_t, MeruScanResult **,
			  char **);
int meru_flush(MeruHandle *, char **);
int meru_refresh(MeruHandle *, char **);
int meru_stats(const MeruHandle *, MeruStats *, char **);
char *meru_catalog_path(const MeruHandle *);
int meru_manifest_info(MeruRuntime *, const char *, MeruManifestInfo **, char **);
void meru_row_free(MeruRow *);
void meru_scan_result_free(MeruScanResult *);
void meru_manifest_info_free(MeruManifestInfo *);
void meru_free_string(char *);
MeruRuntime *meru_runtime_new(uintptr_t, char **);
void meru_runtime_free(MeruRuntime *);

int meru_compact(MeruHandle *, char **);
int meru_export_iceberg(MeruHandle *, const char *, char **);

#ifdef __cplusplus
}
#endif

#endif
