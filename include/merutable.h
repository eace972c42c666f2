/*
 * merutable.h - the C interface of merutable, an embeddable table engine.
 *
 * Rows go through a write-ahead log and a memtable into Parquet files; one Snapshot serves every reader. This header is
 * written by hand and is the source of truth of the ABI: libmerutable.so exports exactly the functions declared here.
 *
 * CONVENTIONS
 *
 * Status   Functions that can fail return a MeruStatus as int and take `char **err` last. err may be NULL; else it
 *          receives NULL on success, or a message (what, where, which limit) to be freed with meru_free_string().
 *          Outputs are written only on success, unless a function says otherwise.
 * Memory   Inputs are borrowed for the call and copied. Outputs are C memory; each says which function frees it. All
 *          free functions take NULL.
 * Threads  Every handle may be used from many threads at once, except where a function says otherwise. Freeing a handle
 *          while another thread uses it is the caller's error.
 * Fork     The engine lives in a Go runtime, which does not survive fork(): in a forked child every function returns
 *          MeruStatus_ErrUnsupported. A child that calls exec() is not concerned.
 * Strings  Names and paths are NUL-terminated UTF-8. Bytes values may hold any byte.
 * Arrow    ArrowSchema, ArrowArray and ArrowArrayStream are those of the Arrow C data and stream interfaces; include
 *          Arrow's own header, or declare them, before using what is pointed to.
 */
#ifndef MERUTABLE_H
#define MERUTABLE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#define MERU_API __declspec(dllimport)
#else
#define MERU_API __attribute__((visibility("default")))
#endif

/* The ABI of this header. meru_abi_version() returns the library's; the major number changes when a client must be
 * compiled anew. */
#define MERU_ABI_MAJOR 1
#define MERU_ABI_MINOR 4

struct ArrowSchema;
struct ArrowArray;
struct ArrowArrayStream;
struct MeruSnapshot;

/* ------------------------------------------------------------------------------------------------------------------
 * Values
 * --------------------------------------------------------------------------------------------------------------- */

/* The type of a column or value. Numbers are never reused. The comment names the member of MeruValueInner. */
typedef enum MeruColumnType {
	MeruColumnType_Boolean = 0,       /* v_bool: 0 or 1 */
	MeruColumnType_Int32 = 1,         /* v_int32 */
	MeruColumnType_Int64 = 2,         /* v_int64 */
	MeruColumnType_Float = 3,         /* v_float */
	MeruColumnType_Double = 4,        /* v_double */
	MeruColumnType_ByteArray = 5,     /* v_bytes: any bytes (SQL: BLOB) */
	MeruColumnType_FixedLenBytes = 6, /* v_bytes: exactly fixed_byte_len bytes (SQL: BLOB) */
	MeruColumnType_Int8 = 7,          /* v_int32 */
	MeruColumnType_Int16 = 8,         /* v_int32 */
	MeruColumnType_UInt8 = 9,         /* v_uint64 */
	MeruColumnType_UInt16 = 10,       /* v_uint64 */
	MeruColumnType_UInt32 = 11,       /* v_uint64 */
	MeruColumnType_UInt64 = 12,       /* v_uint64 */
	MeruColumnType_Int128 = 13,       /* v_int128, two's complement (SQL: HUGEINT) */
	MeruColumnType_UInt128 = 14,      /* v_int128, unsigned (SQL: UHUGEINT) */
	MeruColumnType_Decimal = 15,      /* v_int128: the scaled integer, two's complement */
	MeruColumnType_Utf8 = 16,         /* v_bytes: valid UTF-8 (SQL: VARCHAR) */
	MeruColumnType_Date = 17,         /* v_int32: days since 1970-01-01 */
	MeruColumnType_Time = 18,         /* v_int64: microseconds since midnight */
	MeruColumnType_TimestampS = 19,   /* v_int64: seconds since 1970-01-01, no time zone */
	MeruColumnType_TimestampMs = 20,  /* v_int64: milliseconds */
	MeruColumnType_TimestampUs = 21,  /* v_int64: microseconds (SQL: TIMESTAMP) */
	MeruColumnType_TimestampNs = 22,  /* v_int64: nanoseconds */
	MeruColumnType_TimestampTz = 23,  /* v_int64: microseconds, UTC */
	MeruColumnType_Interval = 24,     /* v_interval */
	MeruColumnType_Uuid = 25,         /* v_uuid: 16 bytes as printed */
	MeruColumnType_Bit = 26,    /* v_bytes: one byte with the count of padding bits, then the bits, padded with 1s */
	MeruColumnType_Enum = 27,   /* v_uint64: the index of the label */
	MeruColumnType_Json = 28,   /* v_bytes: valid UTF-8 (SQL: JSON); its syntax is not looked at */
	MeruColumnType_TimeTz = 29, /* v_int64: let code = 57599 - offset, the offset in seconds east of UTC, of up to 57599
								 * either way; (microseconds since midnight, local, + code * 1000000) << 24 | code */
	MeruColumnType_TimeNs = 30, /* v_int64: nanoseconds since midnight */
	MeruColumnType_Bignum = 31, /* v_bytes: DuckDB's bytes of a BIGNUM */
	/* Nested types. Their values are Arrow's only: in MeruValue they can but be NULL, see meru_put() and meru_get(). */
	MeruColumnType_Struct = 32, /* fields in order */
	MeruColumnType_List = 33,   /* one field: the element */
	MeruColumnType_Array = 34,  /* one field: the element; array_length of them in each value */
	MeruColumnType_Map = 35     /* two fields: key, value */
} MeruColumnType;

/* Status codes: the kind of an error, which is stable; the message is for people. Never renumbered. */
typedef enum MeruStatus {
	MeruStatus_Ok = 0,
	MeruStatus_ErrIo = 1,             /* the file system said no */
	MeruStatus_ErrCorruption = 2,     /* stored bytes are damaged; the message names file and offset */
	MeruStatus_ErrSchemaMismatch = 3, /* the given schema or values do not fit the table's */
	MeruStatus_ErrNotFound = 4,       /* no database or table there */
	MeruStatus_ErrInvalidArg = 5,     /* an argument is out of its domain */
	MeruStatus_ErrReadOnly = 6,       /* a write through a read-only handle */
	MeruStatus_ErrClosed = 7,         /* a write after meru_close() */
	MeruStatus_ErrObjectStore = 8,    /* the object store said no */
	MeruStatus_ErrParquet = 9,        /* a data file cannot be read or written as Parquet */
	MeruStatus_ErrAlreadyExists = 10, /* the table exists already */
	MeruStatus_ErrLocked = 11,        /* another process writes to the directory; the message names it */
	MeruStatus_ErrConflict = 12,      /* lost against a concurrent writer */
	MeruStatus_ErrNoSpace = 13,       /* disk or quota full */
	MeruStatus_ErrCancelled = 14,     /* the caller's interrupt callback asked for it */
	MeruStatus_ErrTimeout = 15,       /* a bound on time was hit */
	MeruStatus_ErrUnsupported = 16,   /* not possible in this version or process */
	MeruStatus_ErrUnknown = 99        /* an internal error, with its trace */
} MeruStatus;

/* Borrowed bytes. data may be NULL when len is 0. */
typedef struct MeruBytesView {
	const uint8_t *data;
	uintptr_t len;
} MeruBytesView;

typedef struct MeruInt128 {
	uint64_t lo;
	uint64_t hi;
} MeruInt128;

typedef struct MeruInterval {
	int32_t months;
	int32_t days;
	int64_t micros;
} MeruInterval;

typedef union MeruValueInner {
	uint8_t v_bool;
	int32_t v_int32;
	int64_t v_int64;
	uint64_t v_uint64;
	float v_float;
	double v_double;
	MeruBytesView v_bytes;
	MeruInt128 v_int128;
	MeruInterval v_interval;
	uint8_t v_uuid[16];
} MeruValueInner;

/* One value. Where is_null is not 0, inner is not read; tag is ignored then on input and set on output. On input the
 * tag must be the column's, with these allowances: Int32 for Int8 and Int16, Int64 and Int32 for any integer type the
 * value fits, ByteArray for Utf8 and Json (checked to be valid UTF-8), Utf8 for ByteArray, Json and Enum (the label). A
 * column of a nested type takes NULL only: ErrUnsupported, as when a row with such a value is read. */
typedef struct MeruValue {
	MeruColumnType tag;
	uint8_t is_null;
	MeruValueInner inner;
} MeruValue;

/* ------------------------------------------------------------------------------------------------------------------
 * Schemas and options, in the plain structs of the first generation
 * --------------------------------------------------------------------------------------------------------------- */

typedef struct MeruColumnDef {
	const char *name;
	MeruColumnType col_type;
	/* FixedLenBytes: the length. Decimal: precision * 256 + scale. Else ignored. */
	int32_t fixed_byte_len;
	uint8_t nullable;
	/* Both may be NULL. initial_default: what rows read as that were written before the column existed. write_default:
	 * what meru_put() writes for a NULL field of a column that is not nullable. */
	const MeruValue *initial_default;
	const MeruValue *write_default;
} MeruColumnDef;

typedef struct MeruSchema {
	const char *table_name;
	const MeruColumnDef *columns;
	uintptr_t column_count;
	/* Column indices in key order. */
	const uintptr_t *primary_key;
	uintptr_t primary_key_len;
} MeruSchema;

typedef struct MeruOpenOptions {
	MeruSchema schema;
	/* The database directory: a path, or a file:// URI; or s3://bucket/prefix. */
	const char *catalog_uri;
	/* NULL: <catalog>/wal. */
	const char *wal_dir;
	/* 0: 64. */
	uintptr_t memtable_size_mb;
	uint8_t read_only;
} MeruOpenOptions;

/* An open database. Handles on one directory within a process share one engine. */
typedef struct MeruHandle MeruHandle;

/* Kept for clients of the first generation, whose thread pool it was. NULL is accepted wherever one is asked for. */
typedef struct MeruRuntime MeruRuntime;

typedef struct MeruRow {
	MeruValue *fields;
	uintptr_t field_count;
} MeruRow;

typedef struct MeruScanResult {
	MeruRow *entries;
	uintptr_t count;
} MeruScanResult;

typedef struct MeruMemtableStats {
	uintptr_t active_size_bytes;
	uint64_t active_entry_count;
	uintptr_t flush_threshold; /* bytes */
	uintptr_t immutable_count;
} MeruMemtableStats;

typedef struct MeruCacheStats {
	uintptr_t capacity; /* bytes */
	uintptr_t size;     /* bytes */
	uint64_t hit_count;
	uint64_t miss_count;
} MeruCacheStats;

typedef struct MeruStats {
	int64_t snapshot_id;  /* the manifest's version */
	uint64_t current_seq; /* the newest visible sequence number */
	MeruMemtableStats memtable;
	MeruCacheStats cache;
} MeruStats;

typedef struct MeruManifestInfo {
	char *table_name;
	MeruColumnDef *columns;
	uintptr_t column_count;
	uintptr_t *primary_key;
	uintptr_t pk_count;
	char **parquet_paths; /* absolute paths of the live data files */
	uintptr_t parquet_count;
} MeruManifestInfo;

/* ------------------------------------------------------------------------------------------------------------------
 * Opening and closing
 * --------------------------------------------------------------------------------------------------------------- */

/* Creates or opens a database for the schema in opts. An existing table must have the same columns and key
 * (ErrSchemaMismatch). With read_only the directory must hold a table (ErrNotFound). The second writing process gets
 * ErrLocked at once. *db is freed by meru_free() or meru_close_free(). */
MERU_API int meru_open(const MeruOpenOptions *opts, MeruRuntime *runtime, MeruHandle **db, char **err);

/* Opens an existing database with the schema that it holds. ErrNotFound where there is no table. Where path is a URL
 * (s3://bucket/prefix) the credentials are those that the AWS tools would take: environment, shared files, the
 * instance; meru_open_with() takes others. */
MERU_API int meru_open_existing(const char *path, uint8_t read_only, MeruRuntime *runtime, MeruHandle **db, char **err);

/* Flushes, makes durable and seals the handle: later writes through it give ErrClosed, reads still work. A second call
 * does nothing. */
MERU_API int meru_close(MeruHandle *db, char **err);
/* Frees the handle without flushing; what was acknowledged is in the log and comes back at the next open. */
MERU_API void meru_free(MeruHandle *db);
/* meru_close() and meru_free(); frees also when closing fails. */
MERU_API int meru_close_free(MeruHandle *db, char **err);
/* 1 after meru_close() (also for NULL), else 0. */
MERU_API int meru_is_closed(const MeruHandle *db);

/* ------------------------------------------------------------------------------------------------------------------
 * Rows
 * --------------------------------------------------------------------------------------------------------------- */

/* Writes a row: inserts it, or replaces the row of the same key. fields are in column order, all of them. *seq (may be
 * NULL) receives the row's sequence number. Durable when the call returns, at the durability the handle was opened
 * with. */
MERU_API int meru_put(MeruHandle *db, const MeruRow *row, uint64_t *seq, char **err);
/* Writes n rows atomically with one sync; of rows with equal keys the last wins. n may be 0 (then *seq is the current
 * sequence number). *seq (may be NULL) receives the last row's sequence number. */
MERU_API int meru_put_batch(MeruHandle *db, const MeruRow *rows, uintptr_t n, uint64_t *seq, char **err);
/* Deletes the row of a key (n values in key order). It is no error if there is none. Reads nothing. */
MERU_API int meru_delete(MeruHandle *db, const MeruValue *pk, uintptr_t n, uint64_t *seq, char **err);
/* Looks a key up. Not found: Ok, *found 0, *row NULL. *row is freed by meru_row_free(). */
MERU_API int meru_get(const MeruHandle *db, const MeruValue *pk, uintptr_t n, int *found, MeruRow **row, char **err);
/* Looks n keys up at once, in one state of the table: each key's fields are the key's values in key order. Costs less
 * than n times meru_get(). (*result)->entries has n rows in the order of the keys; where there is no row, fields is
 * NULL and field_count 0. At most 1,048,576 keys and 1 GiB of rows. *result is freed by meru_scan_result_free(). */
MERU_API int meru_multi_get(const MeruHandle *db, const MeruRow *keys, uintptr_t n, MeruScanResult **result,
							char **err);
/* All rows with start <= key < end, in key order: start is inclusive, end exclusive. A bound may be a prefix of the
 * key's columns; NULL (or count 0) is open. Materialises the result: use meru_scan_arrow() for much data. *result is
 * freed by meru_scan_result_free(). */
MERU_API int meru_scan(const MeruHandle *db, const MeruValue *start, uintptr_t start_count, const MeruValue *end,
					   uintptr_t end_count, MeruScanResult **result, char **err);

/* Writes the memtable to data files and commits them. */
MERU_API int meru_flush(MeruHandle *db, char **err);
/* Read-only handles: sees what the writer committed since; of a database in an object store, unless it was looked for
 * less than refresh_interval_ms ago. On a writing handle it does nothing. */
MERU_API int meru_refresh(MeruHandle *db, char **err);
MERU_API int meru_stats(const MeruHandle *db, MeruStats *stats, char **err);
/* The absolute path of the database directory; freed by meru_free_string(). NULL for a NULL handle. */
MERU_API char *meru_catalog_path(const MeruHandle *db);
/* Reads the newest manifest without opening the database. ErrNotFound where there is no table. *info is freed by
 * meru_manifest_info_free(). */
MERU_API int meru_manifest_info(MeruRuntime *runtime, const char *path, MeruManifestInfo **info, char **err);

MERU_API void meru_row_free(MeruRow *row);
MERU_API void meru_scan_result_free(MeruScanResult *result);
MERU_API void meru_manifest_info_free(MeruManifestInfo *info);
MERU_API void meru_free_string(char *string);
/* threads is ignored; kept for clients of the first generation. Never NULL on success. */
MERU_API MeruRuntime *meru_runtime_new(uintptr_t threads, char **err);
MERU_API void meru_runtime_free(MeruRuntime *runtime);

/* ------------------------------------------------------------------------------------------------------------------
 * Versions
 * --------------------------------------------------------------------------------------------------------------- */

/* The library's version, such as "0.1.0". Static: not freed. */
MERU_API const char *meru_version(void);
/* MERU_ABI_MAJOR * 65536 + MERU_ABI_MINOR of the library. */
MERU_API uint32_t meru_abi_version(void);

/* ------------------------------------------------------------------------------------------------------------------
 * Options by setter
 * --------------------------------------------------------------------------------------------------------------- */

/* Asked now and then during long calls; a result other than 0 makes the call stop with ErrCancelled, nothing done. */
typedef int (*MeruInterruptFn)(void *ctx);

/* Options for meru_open_with() and other calls that open. Any number of threads may open with the same ones at once;
 * setters are not for use beside anything else. */
typedef struct MeruOptions MeruOptions;
MERU_API MeruOptions *meru_options_new(void);
MERU_API void meru_options_free(MeruOptions *options);
/* Sets an option by name; ErrInvalidArg names the option and what it accepts. Sizes in bytes are numbers, or take a
 * unit: KB, MB, GB, TB are powers of 1000, KiB, MiB, GiB, TiB of 1024. Those with a * are stored beside the table when
 * they are given, and a later open without them takes the stored ones. Keys and values:
 *   read_only             "true", "false" (default)
 *   create_if_missing     "true" (default), "false": whether a writing open may create the directory
 *   durability            "sync" (default), "interval", "os"
 *   sync_interval_ms      1 to 60000 (default 100), for durability "interval"
 *   memtable_bytes *      1 MiB to 4 GiB (default 64 MiB)
 *   max_immutables        1 to 64 (default 4): full memtables awaiting flush before writers stop
 *   cache_bytes           from 0 (default 64 MiB): decoded pages for point reads
 *   row_cache_bytes       from 0 (default 16 MiB): rows that gets have read
 *   memory_limit          a budget for all that the engine holds in memory (default none): sizes that are not set get
 *                         their shares of it; less than what is set needs is an error that names the least
 *   default_memory_limit  the same where memory_limit is not given, but it gives way instead of being refused
 *   flush_threads         1 to 64 (default 2): memtables written to files at a time
 *   compaction_threads    1 to 64 (default half the processors): compactions at a time
 *   auto_compaction *     "true" (default), "false": only meru_compact() compacts
 *   l0_files *            from 1 (default 4): files of level 0 at which they are compacted
 *   l0_slow_files *       from l0_files (default 20): files of level 0 at which writers are slowed down
 *   l0_stop_files *       from l0_slow_files (default 36): files of level 0 at which writers stop
 *   pending_slow_bytes *  (default 64 GiB): bytes that wait for compaction at which writers are slowed down
 *   pending_stop_bytes *  from pending_slow_bytes (default 256 GiB): the same for stopping
 *   target_file_bytes *   from 4 KiB (default 64 MiB): where compaction and bulk loads start another file
 *   base_level_bytes *    from 4 KiB (default 256 MiB): size of level 1
 *   level_multiplier *    2 to 1000 (default 10): how much larger each level is than the one above
 *   max_deleted_percent * 1 to 100 (default 20): share of deleted rows above which a file is rewritten
 *   compaction_rate_bytes * from 0 (default 0, no bound): what compaction writes, in bytes a second
 *   retain_versions *     0 to 1000000 (default 0): superseded manifests kept however old, with their files
 *   retain_secs *         0 to 100 years (default 0): how long superseded manifests are kept, with their files
 *   gc_grace_secs *       0 to 604800 (default 300): how long files that nobody references stay for other processes
 *   wal_dir               a path (default: where the log was last, at first <path>/wal)
 *   mirror                s3://bucket/prefix or file:///directory (default: none), where the database is copied to in
 *                         the background; docs/MIRROR.md
 *   mirror_parallelism    1 to 64 (default 4): objects on their way to the mirror at a time
 *   max_lag_alert_secs    from 0 (default 60; 0: never): how far the mirror may be behind before a warning
 *   mirror_flush_secs     from 0 (default 10; 0: never): age at which rows in memory go to files for the mirror's sake
 *   mirror_retain_secs    from 0 (default 300): how long the mirror keeps what was superseded, for its readers
 *   commit_linger_ms      from 0 (default 0): how long a commit to an object store waits for others to go with it
 *   object_cache_dir      a directory (default: none) for blocks that were read from an object store
 *   object_cache_bytes    from 0 (default 1 GiB): bounds what is kept there
 *   refresh_interval_ms   0 to 3600000 (default 1000): how old what a reader of an object store shows may be before
 *                         meru_refresh() and opening look for newer
 *   s3_endpoint           a host, host:port or URL (default: AWS)
 *   s3_region             (default: as the AWS tools find it, else us-east-1)
 *   s3_url_style          "path", "vhost" (default: path where there is an endpoint)
 *   s3_use_ssl            "true", "false" (default: as the endpoint's URL says, else true)
 *   s3_access_key_id, s3_secret_access_key, s3_session_token
 *                         credentials (default: those that the AWS tools would take). They are not stored, and no
 *                         function, message or event gives them back
 * Those of s3_ are for the URL of the database and that of its mirror. */
MERU_API int meru_options_set(MeruOptions *options, const char *key, const char *value, char **err);

/* Opens a database directory, or one in an object store (s3://bucket/prefix), with or without a table in it. options
 * may be NULL. A writing handle creates the directory; a read-only one fails with ErrNotFound where there is none.
 * Handles of one process on one directory share one engine: the options of the first one hold. */
MERU_API int meru_open_with(const char *path, const MeruOptions *options, MeruHandle **db, char **err);

/* Asked while meru_open_with() waits for an object store, on its thread. interrupt may be NULL; it and ctx must last as
 * long as calls with these options. */
MERU_API void meru_options_set_interrupt(MeruOptions *options, MeruInterruptFn interrupt, void *ctx);

/* A handle for reading: the engine that this process has open for writing on that directory, else a read-only one which
 * is refreshed by this call. Never takes the writer's lock. Freed read-only engines stay open in a small cache, see
 * meru_reader_cache_set(). */
MERU_API int meru_open_reader(const char *path, MeruHandle **db, char **err);
/* How many idle read-only engines the process keeps open: 0 to 1024 (default 8). Surplus ones are closed, the one
 * unused longest first. */
MERU_API int meru_reader_cache_set(uintptr_t handles, char **err);

/* ------------------------------------------------------------------------------------------------------------------
 * Table schemas with every type
 * --------------------------------------------------------------------------------------------------------------- */

/* A table schema, being built or read. Not for use from two threads at once while it is built. */
typedef struct MeruTableSchema MeruTableSchema;

/* What meru_table_schema_column() tells of a column, or of a part of a nested type. Strings and fields belong to the
 * schema. */
typedef struct MeruColumnInfo {
	const char *name;
	MeruColumnType type;
	int32_t precision;      /* Decimal: digits */
	int32_t scale;          /* Decimal: digits after the point */
	int32_t fixed_byte_len; /* FixedLenBytes: the length */
	int32_t field_id;       /* stable for the life of the table; in the data files too */
	int32_t key_position;   /* place in the primary key, from 0; -1: not in the key */
	uint8_t nullable;
	const char *default_sql;   /* the DEFAULT as SQL text; NULL: none */
	const char *const *labels; /* Enum: the labels, in order */
	uintptr_t label_count;
	/* Struct: its fields. List and Array: the element. Map: key and value. Of a field name, type, precision, scale,
	 * fixed_byte_len, field_id, labels, label_count, fields, field_count and array_length count; the names of others
	 * than a Struct's fields are not read. Types may stand 32 deep in each other, with 4,096 fields in one column. */
	const struct MeruColumnInfo *fields;
	uintptr_t field_count;
	int32_t array_length; /* Array: the number of elements, 1 to 100000 */
} MeruColumnInfo;

MERU_API MeruTableSchema *meru_table_schema_new(const char *table_name);
/* Adds a column; reads name, type, precision, scale, fixed_byte_len, nullable, default_sql, labels, label_count,
 * fields, field_count and array_length of info, and the rest not: field ids are given here. ErrInvalidArg names the
 * column. */
MERU_API int meru_table_schema_add_column(MeruTableSchema *schema, const MeruColumnInfo *info, char **err);
/* Appends a column to the primary key; makes it NOT NULL. */
MERU_API int meru_table_schema_add_key(MeruTableSchema *schema, uintptr_t column_index, char **err);
/* What meru_create_table() would refuse the schema for, wherever it were to be created. Ok: nothing. */
MERU_API int meru_table_schema_validate(const MeruTableSchema *schema, char **err);
MERU_API const char *meru_table_schema_name(const MeruTableSchema *schema);
MERU_API uintptr_t meru_table_schema_column_count(const MeruTableSchema *schema);
MERU_API int meru_table_schema_column(const MeruTableSchema *schema, uintptr_t column_index, MeruColumnInfo *info,
									  char **err);
MERU_API uintptr_t meru_table_schema_key_count(const MeruTableSchema *schema);
/* The index of the column that is part key_position of the key. UINTPTR_MAX when out of range. */
MERU_API uintptr_t meru_table_schema_key_column(const MeruTableSchema *schema, uintptr_t key_position);
/* Adds a CHECK constraint: its condition as SQL text. The engine keeps it with the table; hosts that know SQL enforce
 * it for what they write, the C interface does not. */
MERU_API int meru_table_schema_add_check(MeruTableSchema *schema, const char *sql, char **err);
MERU_API uintptr_t meru_table_schema_check_count(const MeruTableSchema *schema);
/* The condition of a CHECK constraint, in declared order; belongs to the schema. NULL when out of range. */
MERU_API const char *meru_table_schema_check(const MeruTableSchema *schema, uintptr_t index);
/* What rows have in columns that were added behind them: a struct array of one row and all columns, in the types of
 * meru_arrow_schema() (NULL for nothing, also where the column is not nullable), with *found 1. *found 0 and out
 * untouched where no column has such a default. The caller releases *out. */
MERU_API int meru_table_schema_initial_defaults(const MeruTableSchema *schema, int *found, struct ArrowArray *out,
												char **err);
/* The comment of a column, or of the table for UINTPTR_MAX; NULL for none. It belongs to the schema. */
MERU_API const char *meru_table_schema_comment(const MeruTableSchema *schema, uintptr_t column_index);
MERU_API int meru_table_schema_set_comment(MeruTableSchema *schema, uintptr_t column_index, const char *comment,
										   char **err);
MERU_API void meru_table_schema_free(MeruTableSchema *schema);

/* Creates a table of the database, whatever table the handle is for: in the root of the directory, if there is no table
 * there, else in a directory of its own. ErrAlreadyExists where there is a table of that name, in whatever case.
 * Durable when the call returns. */
MERU_API int meru_create_table(MeruHandle *db, const MeruTableSchema *schema, char **err);
/* Drops the handle's table with all its rows, atomically. ErrNotFound where there is none. Snapshots held stay
 * readable, and so do other tables. */
MERU_API int meru_drop_table(MeruHandle *db, char **err);

/* A database has up to 4096 tables. A MeruHandle stands for one of them, that in the root of the directory unless it
 * comes from meru_open_table(): what a function says about the table is about that one. meru_flush() and
 * meru_collect_garbage() are about all tables, and statistics are those of all together. Names are told apart without
 * regard to the case of A to Z. */
typedef struct MeruTableInfo {
	const char *name;
	const char *directory; /* with the table's metadata and data; absolute */
	uint64_t id;           /* 0: in the root; others are never given twice */
} MeruTableInfo;

typedef struct MeruTableList {
	const MeruTableInfo *tables; /* by id */
	uintptr_t count;
} MeruTableList;

/* The tables that there are. *list is freed by meru_table_list_free(). */
MERU_API int meru_tables(const MeruHandle *db, MeruTableList **list, char **err);
MERU_API void meru_table_list_free(MeruTableList *list);
/* A handle on a table of the database, with the rights of db, which stays with the table when it is renamed.
 * ErrNotFound where there is none of that name or id; id 0 may be opened before there is a table in the root. *table is
 * freed by meru_free(), before db or after; the database is closed when no handle is left. */
MERU_API int meru_open_table(const MeruHandle *db, const char *name, MeruHandle **table, char **err);
MERU_API int meru_open_table_id(const MeruHandle *db, uint64_t id, MeruHandle **table, char **err);
/* Gives the table another name, atomically. ErrAlreadyExists where another table has it. */
MERU_API int meru_rename_table(MeruHandle *db, const char *name, char **err);
/* A number that changes whenever a table of the database comes or goes, or is defined otherwise. 0 for NULL. */
MERU_API uint64_t meru_catalog_version(const MeruHandle *db);

/* What a reader sees of all tables at one moment. Of a read-only handle it is what the last refresh found. */
typedef struct MeruSnapshotSet MeruSnapshotSet;
MERU_API int meru_snapshot_all(const MeruHandle *db, MeruSnapshotSet **set, char **err);
/* The snapshot of one table, ErrNotFound where the set has none. It is released by itself, before the set or after. */
MERU_API int meru_snapshot_of(const MeruSnapshotSet *set, uint64_t id, struct MeruSnapshot **snapshot, char **err);
MERU_API void meru_snapshot_set_free(MeruSnapshotSet *set);
/* The table's schema; ErrNotFound where the database has no table. */
MERU_API int meru_table_schema_get(const MeruHandle *db, MeruTableSchema **schema, char **err);
/* A number that changes whenever what a new snapshot would show changes (rows, files or schema). Takes no lock. On a
 * read-only handle it changes at refresh. */
MERU_API uint64_t meru_state_version(const MeruHandle *db);

/* ------------------------------------------------------------------------------------------------------------------
 * Changing a table
 * --------------------------------------------------------------------------------------------------------------- */

/* Changes of a table's schema, being put together for meru_alter_table(). Not for use from two threads at once. Names
 * of columns are found as SQL finds them: ignoring ASCII case, where no name is exact. What the table refuses is said
 * by meru_alter_table(). */
typedef struct MeruAlter MeruAlter;
MERU_API MeruAlter *meru_alter_new(void);
MERU_API void meru_alter_free(MeruAlter *alter);
/* Adds a column behind the others. The rows that there are read as its initial_default: NULL without one, for which it
 * must be nullable. if_not_exists (not 0): a column of that name stays as it is, instead of ErrAlreadyExists. */
MERU_API int meru_alter_add_column(MeruAlter *alter, const MeruColumnDef *column, uint8_t if_not_exists, char **err);
/* The same for every type: reads of info what meru_table_schema_add_column() reads. initial is a struct array of one
 * row and one column in the type of meru_arrow_schema() (taken, also on error), or NULL. */
MERU_API int meru_alter_add_column_arrow(MeruAlter *alter, const MeruColumnInfo *info, struct ArrowArray *initial,
										 const struct ArrowSchema *schema, uint8_t if_not_exists, char **err);
/* Drops a column that is not part of the key. One that is added later under its name is another one. */
MERU_API int meru_alter_drop_column(MeruAlter *alter, const char *name, uint8_t if_exists, char **err);
MERU_API int meru_alter_rename_column(MeruAlter *alter, const char *name, const char *new_name, char **err);
MERU_API int meru_alter_rename_table(MeruAlter *alter, const char *new_name, char **err);
/* default_sql NULL: none. Rows that there are keep their values. Drops the column's write_default. */
MERU_API int meru_alter_set_default(MeruAlter *alter, const char *name, const char *default_sql, char **err);
/* not_null 0: the column becomes nullable, which key columns cannot be. */
MERU_API int meru_alter_set_not_null(MeruAlter *alter, const char *name, uint8_t not_null, char **err);
/* Makes a column's type wider, without a rewrite of the rows: reads of info the name and the type with what belongs to
 * it. To wider integers, DECIMALs with as many digits on both sides of the point, Float to Double, timestamps and Date
 * to TimestampUs, integers to Decimal, Float, Double and Utf8 where each value is exact, Enum to Utf8 and to more
 * labels. */
MERU_API int meru_alter_set_type(MeruAlter *alter, const MeruColumnInfo *info, char **err);
/* Replaces the conditions of all CHECK constraints. */
MERU_API int meru_alter_set_checks(MeruAlter *alter, const char *const *sql, uintptr_t count, char **err);
/* column NULL: the table's. comment NULL: none. */
MERU_API int meru_alter_set_comment(MeruAlter *alter, const char *column, const char *comment, char **err);
/* Makes the changes, in the order in which they were added: all of them or, after an error, none. Files stay as they
 * are and are read with the new schema; rows in memory go to files before. Durable when it returns. Snapshots that are
 * held keep the old schema; writes that were begun with it fail with ErrConflict. ErrNotFound: there is no such column;
 * ErrAlreadyExists: the name is taken; ErrSchemaMismatch: rows do not fit (NULLs, dates out of range);
 * ErrUnsupported: it would take a rewrite, and what would not; ErrInvalidArg: it cannot be, such as to drop a part of
 * the key. */
MERU_API int meru_alter_table(MeruHandle *db, const MeruAlter *alter, char **err);

/* ------------------------------------------------------------------------------------------------------------------
 * Writing in bulk
 * --------------------------------------------------------------------------------------------------------------- */

/* One atomic change of any size: small ones go through the log, large ones straight to data files; in both cases all
 * becomes visible at once. Later rows win over earlier ones of the same key. A write is used by one thread at a time.
 */
typedef struct MeruWrite MeruWrite;
MERU_API int meru_write_begin(MeruHandle *db, MeruWrite **write, char **err);
/* A change that brings its own table: meru_write_commit() creates it, with the rows, in one step. Where there is a
 * table of its name already, replace (not 0) puts the new one in its place, else it is ErrAlreadyExists. If the table
 * that there is changes before the commit, that fails with ErrConflict. Rows have the types of the schema given. */
MERU_API int meru_write_begin_table(MeruHandle *db, const MeruTableSchema *schema, uint8_t replace, MeruWrite **write,
									char **err);
/* interrupt may be NULL; it is called on the thread that calls into the write. */
MERU_API void meru_write_set_interrupt(MeruWrite *write, MeruInterruptFn interrupt, void *ctx);
/* Makes meru_write_commit() fail with ErrConflict, nothing written, where a key that the write puts or deletes was
 * changed after the snapshot was taken. Without it the last writer wins. */
MERU_API int meru_write_set_snapshot(MeruWrite *write, const struct MeruSnapshot *snapshot, char **err);
/* Adds rows: a struct array whose children are all columns in order, in the types of meru_arrow_schema(). Takes the
 * array (it is released also on error) and leaves the schema to the caller. After an error the write can only be
 * freed. */
MERU_API int meru_write_put_arrow(MeruWrite *write, struct ArrowArray *rows, const struct ArrowSchema *schema,
								  char **err);
/* Adds deletions: a struct array whose children are the key columns in key order. Ownership as above. */
MERU_API int meru_write_delete_arrow(MeruWrite *write, struct ArrowArray *keys, const struct ArrowSchema *schema,
									 char **err);
/* The same in two steps, for changes that several threads make: preparing a block, which is most of the work, may be
 * done by any number of threads at once, also beside other calls on the write; blocks are then appended in the order in
 * which their rows count, by one thread at a time. An error of preparing leaves the write as it is. */
typedef struct MeruBlock MeruBlock;
MERU_API int meru_write_prepare_put_arrow(MeruWrite *write, struct ArrowArray *rows, const struct ArrowSchema *schema,
										  MeruBlock **block, char **err);
MERU_API int meru_write_prepare_delete_arrow(MeruWrite *write, struct ArrowArray *keys,
											 const struct ArrowSchema *schema, MeruBlock **block, char **err);
/* Takes the block, also on an error. Only blocks of this write are accepted. */
MERU_API int meru_write_append(MeruWrite *write, MeruBlock *block, char **err);
/* About how much memory a block takes. */
MERU_API uint64_t meru_block_bytes(const MeruBlock *block);
/* Drops a block that was not appended. It may be freed after its write. */
MERU_API void meru_block_free(MeruBlock *block);
/* Commits: durable and visible when it returns Ok. On an error nothing was written, unless the disk or
 * the store failed at the very moment of the commit: then all later writes of the database fail too, and the next open
 * tells. *seq (may be NULL) as in meru_put_batch(). The write is used up; free it. */
MERU_API int meru_write_commit(MeruWrite *write, uint64_t *seq, char **err);
/* Drops what was not committed. */
MERU_API void meru_write_free(MeruWrite *write);

/* begin, put, commit in one: upserts the rows of one array atomically. */
MERU_API int meru_put_arrow(MeruHandle *db, struct ArrowArray *rows, const struct ArrowSchema *schema, uint64_t *seq,
							char **err);

/* ------------------------------------------------------------------------------------------------------------------
 * Transactions of several statements
 * --------------------------------------------------------------------------------------------------------------- */

/* Any number of writes that become visible together. A transaction reads the state of its begin and what it has written
 * itself; others see nothing of it before the commit. Of two that are open at the same time and write the same key, the
 * one that commits later fails with ErrConflict; what was only read is not checked (snapshot isolation). Its rows lie
 * in memory up to a quarter of memtable_bytes, else in temporary files without a name, inside the database directory,
 * or the system's directory for them where the database is in an object store. As long as it is open, the files and
 * rows of its begin stay. It covers all tables of the database. For any number of threads; of two writes that change
 * one key the one that was committed later counts.
 *
 * table: the name of a table, or NULL for the one of the handle that the transaction was begun with. */
typedef struct MeruTxn MeruTxn;
/* Free it in every case. The handle must be one for writing, and may be freed before. */
MERU_API int meru_txn_begin(MeruHandle *db, MeruTxn **txn, char **err);
/* Asked during meru_txn_commit(), on its thread; interrupt may be NULL, and must not use the transaction. */
MERU_API void meru_txn_set_interrupt(MeruTxn *txn, MeruInterruptFn interrupt, void *ctx);
/* The schema that the table has in the transaction; ErrNotFound where there is none. */
MERU_API int meru_txn_schema(MeruTxn *txn, const char *table, MeruTableSchema **schema, char **err);
/* What the transaction sees now of a table, its own committed writes included. It stays the same whatever the
 * transaction does afterwards, and may outlive it. */
MERU_API int meru_txn_snapshot(MeruTxn *txn, const char *table, struct MeruSnapshot **snapshot, char **err);
/* A statement: a write whose meru_write_commit() makes it a part of the transaction, whole; *seq is 0 then. Until then
 * not even the transaction sees it; freed without a commit it leaves nothing. */
MERU_API int meru_txn_write(MeruTxn *txn, const char *table, MeruWrite **write, char **err);
/* Tables that come and go: in the transaction's own view at once, for everybody with the commit. That fails with
 * ErrConflict where somebody else has made, dropped, replaced or altered a table of the name meanwhile.
 * ErrAlreadyExists and ErrNotFound are about what the transaction sees. */
MERU_API int meru_txn_create_table(MeruTxn *txn, const MeruTableSchema *schema, char **err);
MERU_API int meru_txn_drop_table(MeruTxn *txn, const char *table, char **err);
/* Changes the schema of a table, as meru_alter_table() does, in the transaction's own view at once, for everybody with
 * the commit. Writes of the table that were begun before fail with ErrConflict when they are committed. The commit
 * fails with ErrConflict where the table was altered meanwhile, rows were written that do not fit, or another table has
 * got its new name. */
MERU_API int meru_txn_alter_table(MeruTxn *txn, const char *table, const MeruAlter *alter, char **err);
/* A statement that adds a table with its rows when it is committed; where there is one of that name, replace (not 0)
 * puts the new one in its place. */
MERU_API int meru_txn_write_table(MeruTxn *txn, const MeruTableSchema *schema, uint8_t replace, MeruWrite **write,
								  char **err);
/* Makes everything durable and visible at once; *seq (may be NULL) as in meru_put_batch(). It ends the transaction in
 * every case: after an error nothing was written, as meru_write_commit() says. ErrConflict: a row that it wrote, or a
 * table, was changed by somebody else since the begin. */
MERU_API int meru_txn_commit(MeruTxn *txn, uint64_t *seq, char **err);
/* Drops everything; after a commit, or a second time, it does nothing. */
MERU_API void meru_txn_rollback(MeruTxn *txn);
/* Rolls back what was not committed, and frees. Writes of it that are left can only be freed. */
MERU_API void meru_txn_free(MeruTxn *txn);

/* ------------------------------------------------------------------------------------------------------------------
 * Snapshots and scans
 * --------------------------------------------------------------------------------------------------------------- */

/* What a reader sees: data files minus deletion vectors, plus the rows that are only in memory. It stays the same, and
 * its files stay on disk, until it is released. For any number of threads. */
typedef struct MeruSnapshot MeruSnapshot;

typedef struct MeruSnapshotInfo {
	int64_t version; /* the manifest's number */
	uint64_t seq;    /* the newest row visible */
	uint64_t file_count;
	uint64_t live_rows; /* live rows of the files, and in memory: exact where memory_rows is 0, else never too few */
	uint64_t
		memory_rows;   /* row versions and deletions only in memory: 0 is exact, else no fewer than the overlay has */
	uint8_t looked_up; /* not 0: a part without files whose overlay yields the rows of files too */
} MeruSnapshotInfo;

typedef struct MeruFileInfo {
	const char *path; /* absolute; belongs to the snapshot */
	uint64_t size;    /* bytes */
	uint64_t rows;    /* in the file, deleted ones included */
	uint64_t deleted; /* of those, not visible in this snapshot */
	int32_t level;
	uint64_t seq_min;
	uint64_t seq_max;
	MeruBytesView key_min; /* encoded keys; belong to the snapshot */
	MeruBytesView key_max;
} MeruFileInfo;

/* ErrNotFound where the database has no table. */
MERU_API int meru_snapshot_acquire(const MeruHandle *db, MeruSnapshot **snapshot, char **err);
/* What the table held in an older version, by the number of its manifest, or in the newest one, without the rows in
 * memory. ErrNotFound where the version is gone, is still to come, or is of another table; the message names the oldest
 * and the newest there are. Options retain_versions and retain_secs say what is kept. */
MERU_API int meru_snapshot_at(const MeruHandle *db, int64_t version, MeruSnapshot **snapshot, char **err);
/* The same for the newest version that was committed at a point in time or before it: microseconds since 1970-01-01
 * UTC, by the clock of who committed it, which counts to the millisecond. */
MERU_API int meru_snapshot_as_of(const MeruHandle *db, int64_t timestamp_us, MeruSnapshot **snapshot, char **err);
MERU_API void meru_snapshot_release(MeruSnapshot *snapshot);
MERU_API int meru_snapshot_info(const MeruSnapshot *snapshot, MeruSnapshotInfo *info, char **err);
MERU_API int meru_snapshot_schema(const MeruSnapshot *snapshot, MeruTableSchema **schema, char **err);
MERU_API int meru_snapshot_file(const MeruSnapshot *snapshot, uintptr_t index, MeruFileInfo *info, char **err);
/* What is known of a file without looking anything up. */
typedef struct MeruDataFile {
	const char *path; /* absolute; belongs to the snapshot */
	uint64_t size;    /* bytes */
	uint64_t rows;    /* in the file, deleted ones included */
	uint64_t deleted; /* by its deletion vector: rows in memory may hide more of them, see meru_snapshot_file() */
	int32_t level;
	uint64_t place;   /* its number in the whole snapshot, where this one is a part */
	uint64_t seq_min; /* the sequence numbers of its rows; where both are equal, column _merutable_seq may hold 0 */
	uint64_t seq_max;
	MeruBytesView key_min; /* the first key, encoded: keys compare as their bytes do. Belongs to the snapshot */
} MeruDataFile;
MERU_API int meru_snapshot_data_file(const MeruSnapshot *snapshot, uintptr_t index, MeruDataFile *file, char **err);
/* A data file, open for reading, wherever it is: for hosts with a Parquet reader of their own. Its bytes never change.
 * For any number of threads. */
typedef struct MeruFile MeruFile;
/* Opens data file index. The file may be read after the snapshot was released. *file is freed by meru_file_free(). */
MERU_API int meru_snapshot_file_open(const MeruSnapshot *snapshot, uintptr_t index, MeruFile **file, char **err);
/* Asked while meru_file_read() waits for an object store, on the thread that reads. interrupt may be NULL; it and ctx
 * must last as long as the file. Before the file is used by several threads. */
MERU_API void meru_file_set_interrupt(MeruFile *file, MeruInterruptFn interrupt, void *ctx);
/* In bytes; 0 for NULL. */
MERU_API uint64_t meru_file_size(const MeruFile *file);
/* Reads up to n bytes from offset on. *got is n unless the file ends before. Of an object store, blocks come from its
 * cache where they are there. */
MERU_API int meru_file_read(const MeruFile *file, uint64_t offset, void *buffer, uintptr_t n, uintptr_t *got,
							char **err);
/* After all reads have returned. */
MERU_API void meru_file_free(MeruFile *file);
/* The number of rows, exactly. With rows in memory, what came since the last count is looked up in the files, as a scan
 * would. Of a part: that of the whole snapshot. */
MERU_API int meru_snapshot_count(const MeruSnapshot *snapshot, uint64_t *rows, char **err);
/* What metadata says of a column. */
typedef struct MeruColumnStats {
	uint8_t has_bounds; /* not 0: all values that are not NULL lie between min and max, both inclusive */
	uint8_t has_null;   /* 0: there are no NULLs */
	/* Integers, DATE, TIME, the TIMESTAMP family, DECIMAL of up to 18 digits, BOOLEAN: as int64 (unsigned: uint64);
	 * FLOAT and DOUBLE: their bits. Other types have no bounds. */
	uint64_t min;
	uint64_t max;
	uint64_t distinct; /* about how many distinct values there are; 0: not known */
} MeruColumnStats;
/* For query planners: true of every row, or not there. With exact (not 0) the bounds are values of rows, or not there;
 * for the first key column they are looked up then. Of a part: those of the whole snapshot. */
MERU_API int meru_snapshot_column_stats(const MeruSnapshot *snapshot, uintptr_t column, uint8_t exact,
										MeruColumnStats *stats, char **err);
/* The same for the rows of some files alone, deleted ones included, without distinct: of file files[i], which is below
 * the number of the snapshot's files, stats[i]. A file is opened for it when it is first asked for, several at a time.
 */
MERU_API int meru_snapshot_file_stats(const MeruSnapshot *snapshot, uintptr_t column, const uintptr_t *files,
									  uintptr_t count, MeruColumnStats *stats, char **err);
/* The positions (row numbers in the file, ascending) that are not visible in this snapshot: its deletion vector, and
 * the rows that rows in memory supersede. *positions belongs to the snapshot. */
MERU_API int meru_snapshot_deletes(const MeruSnapshot *snapshot, uintptr_t index, const uint32_t **positions,
								   uintptr_t *count, char **err);
/* The live rows that are only in memory, in key order, as a stream of struct arrays of at most 16,384 rows: the columns
 * asked for, in that order (columns NULL: all). A stream may outlive the snapshot's release. Streams are for one thread
 * at a time. */
MERU_API int meru_snapshot_overlay(const MeruSnapshot *snapshot, const uint32_t *columns, uintptr_t column_count,
								   struct ArrowArrayStream *out, char **err);
/* The overlay in pieces, for several threads: ranges of keys of about as many rows each. *count is 0 where there are no
 * rows in memory. All pieces together have each row of the overlay once, in order. Pieces are numbered from 0. Behind
 * the columns asked for may stand two more, both Int64: that of the table's number of columns is the row's sequence
 * number, NULL for a row that is not committed yet; the one after it is a number that no other row in memory has. */
MERU_API int meru_snapshot_overlay_pieces(const MeruSnapshot *snapshot, uintptr_t *count, char **err);
MERU_API int meru_snapshot_overlay_piece(const MeruSnapshot *snapshot, uintptr_t piece, const uint32_t *columns,
										 uintptr_t column_count, struct ArrowArrayStream *out, char **err);
/* A range of keys: a zeroed struct is the whole table, upwards. */
typedef struct MeruScanRange {
	const MeruValue *lower; /* a prefix of the key's columns */
	uintptr_t lower_count;  /* 0: open */
	uint8_t lower_exclusive;
	const MeruValue *upper;
	uintptr_t upper_count;
	uint8_t upper_exclusive;
	uint8_t reverse; /* not 0: in descending order of the keys; lower and upper mean the same */
	uint64_t limit;  /* 0: none */
} MeruScanRange;
/* meru_snapshot_overlay() for the rows of a key range. range may be NULL. */
MERU_API int meru_snapshot_overlay_range(const MeruSnapshot *snapshot, const MeruScanRange *range,
										 const uint32_t *columns, uintptr_t column_count, struct ArrowArrayStream *out,
										 char **err);
/* Looks up one key, given as a struct array of one row with the key columns in key order (taken, as above). Found:
 * *found 1 and *out an array of one row with all columns; else *found 0 and out untouched. */
MERU_API int meru_snapshot_get(const MeruSnapshot *snapshot, struct ArrowArray *key, const struct ArrowSchema *schema,
							   int *found, struct ArrowArray *out, char **err);
/* Looks many keys up at once, given as a struct array with the key columns in key order (taken, as above), in any order
 * and with repetitions: found has a byte for each, 1 where there is a row. out (may be NULL: no row is read) receives
 * the rows that were found, in the order of the keys, with all columns. At most 1,048,576 keys and 1 GiB of rows. */
MERU_API int meru_snapshot_multi_get(const MeruSnapshot *snapshot, struct ArrowArray *keys,
									 const struct ArrowSchema *schema, uint8_t *found, struct ArrowArray *out,
									 char **err);
/* What a snapshot shows of a range of keys, as a snapshot of its own: it has the files that meet the range, and its
 * overlay is what is in memory of the range. Where the range holds few rows the part has no files, and its overlay
 * yields all of them; one key costs a look-up. Its live_rows is an estimate. The ends are prefixes of the key: struct
 * arrays of one row with the first key columns in key order (taken, as above); NULL is open. *part is released by
 * meru_snapshot_release(), before or after the whole. Parts of parts and meru_snapshot_get() see the whole. */
MERU_API int meru_snapshot_part(const MeruSnapshot *snapshot, struct ArrowArray *lower,
								const struct ArrowSchema *lower_schema, uint8_t lower_exclusive,
								struct ArrowArray *upper, const struct ArrowSchema *upper_schema,
								uint8_t upper_exclusive, MeruSnapshot **part, char **err);
/* The same for the rows whose keys begin with one of some prefixes: a struct array of at most 65,536 rows with the
 * first key columns in key order (taken, as above). Whole keys are looked up where that is less work than a scan. */
MERU_API int meru_snapshot_part_of_keys(const MeruSnapshot *snapshot, struct ArrowArray *prefixes,
										const struct ArrowSchema *schema, MeruSnapshot **part, char **err);
/* Makes a part one that has its files, however few rows of them are meant. To be called before anything else is asked
 * of it. */
MERU_API int meru_part_leave_files(MeruSnapshot *part, char **err);
/* Whether the keys of file index meet a range; the ends as in meru_snapshot_part(). */
MERU_API int meru_snapshot_file_meets(const MeruSnapshot *snapshot, uintptr_t index, struct ArrowArray *lower,
									  const struct ArrowSchema *lower_schema, uint8_t lower_exclusive,
									  struct ArrowArray *upper, const struct ArrowSchema *upper_schema,
									  uint8_t upper_exclusive, int *meets, char **err);

/* Rows of a key range in key order, downwards with reverse, as a stream of struct arrays of at most 65,536 rows. range
 * may be NULL. */
MERU_API int meru_scan_arrow(const MeruSnapshot *snapshot, const MeruScanRange *range, const uint32_t *columns,
							 uintptr_t column_count, struct ArrowArrayStream *out, char **err);

/* The Arrow types in which rows go in and out, as a struct schema of all columns. Types of Arrow's own where it has
 * them; else: Int128 and Interval are w:16 (big-endian, each integer with its sign bit flipped; Interval: months, days,
 * microseconds), UInt128 is w:16 big-endian, Bit and Bignum are z, Enum is u (the label), Json is u, TimeTz is l (see
 * MeruColumnType). Struct, List, Array and Map are +s, +l, +w:n and +m of these. Field metadata, of nested fields too:
 * merutable.type, merutable.field_id. The caller releases *out. */
MERU_API int meru_arrow_schema(const MeruTableSchema *schema, struct ArrowSchema *out, char **err);

/* Counters and gauges of the engine as a JSON object; freed by meru_free_string(). docs/CAPI.md lists them. */
MERU_API int meru_stats_json(const MeruHandle *db, char **json, char **err);

/* Writes the rows in memory to data files and makes one sorted run of all files, deleted rows left out. Readers and
 * writers go on meanwhile. Where the table is in that shape already it does nothing more. The engine compacts by itself
 * as needed (option auto_compaction): this is for a table that will be read for long, or moved. */
MERU_API int meru_compact(MeruHandle *db, char **err);
/* The same for the files that hold keys of a range: bounds are prefixes of the key's columns, both inclusive; NULL (or
 * count 0) is open. interrupt (may be NULL) is asked on the calling thread: what was compacted until then stays. */
MERU_API int meru_compact_range(MeruHandle *db, const MeruValue *lower, uintptr_t lower_count, const MeruValue *upper,
								uintptr_t upper_count, MeruInterruptFn interrupt, void *ctx, char **err);

/* Removes at once what may go: superseded files that no snapshot, no reader in another process and no retention needs,
 * logs whose rows are in data files, leftovers of crashes. The engine does so by itself; dry_run (not 0) only tells.
 * out (may be NULL) receives a stream of what was found: path (utf8), bytes (int64), reason (utf8), removed (bool; in a
 * dry run false), error (utf8, why it is still there, or NULL). Files of the reason "unknown" are not the engine's, and
 * are left alone. The caller releases *out. */
MERU_API int meru_collect_garbage(MeruHandle *db, uint8_t dry_run, struct ArrowArrayStream *out, char **err);

/* Told now and then during long calls how much is done, from 0 to 1, never less than before. */
typedef void (*MeruProgressFn)(void *ctx, double done);

/* What to ask and tell during a long call, on the thread that calls. Both may be NULL; ctx is passed to both. */
typedef struct MeruWatch {
	MeruInterruptFn interrupt;
	MeruProgressFn progress;
	void *ctx;
} MeruWatch;

/* meru_flush() that can be interrupted: then it ends with ErrCancelled, and the flush goes on by itself. */
MERU_API int meru_flush_watched(MeruHandle *db, const MeruWatch *watch, char **err);
/* meru_refresh() that can be interrupted while it waits for an object store. */
MERU_API int meru_refresh_watched(MeruHandle *db, const MeruWatch *watch, char **err);
/* meru_compact() that tells how far it is. What was compacted until an interrupt stays. */
MERU_API int meru_compact_watched(MeruHandle *db, const MeruWatch *watch, char **err);

/* Checks all that a database directory holds: manifests, every data file (checksums, rows, the order of keys, key
 * index, bloom filters, bounds, sequence numbers), deletion vectors, logs, and that no key is live twice. It opens no
 * database and writes nothing, so that it also works where nothing else does, and beside a writer. Damage is no error:
 * it goes on and names all of it. *out, which the caller releases, is a stream: kind (utf8: manifest, data, deletes,
 * log, options, table), path, what (was checked, or found wrong), status (ok, damaged, missing, unreadable, or
 * unfinished: the end of the newest log, being written or torn by a crash), detail. ErrNotFound where there is no
 * database. */
MERU_API int meru_verify(const char *path, const MeruWatch *watch, struct ArrowArrayStream *out, char **err);
/* The same with options, of which those of S3 count; options may be NULL. path may be s3://bucket/prefix. */
MERU_API int meru_verify_with(const char *path, const MeruOptions *options, const MeruWatch *watch,
							  struct ArrowArrayStream *out, char **err);

/* What meru_clone() has made. */
typedef struct MeruCloneReport {
	int64_t version; /* of the table in the root, or of the only one */
	uint64_t tables;
	uint64_t files;            /* data files and those with deletion vectors that were copied */
	uint64_t bytes;            /* of data files */
	uint64_t rows;             /* live ones in those, of all tables */
	uint64_t rows_from_memory; /* versions of rows that were only in the source's log: they are in the clone as well */
} MeruCloneReport;
/* Makes a writable copy of a database in the directory dir, which must not exist or be empty (ErrAlreadyExists). source
 * is a mirror or another database in an object store (s3://bucket/prefix), or a directory, which others may be writing
 * to: what is copied is one moment of it. version: as in meru_snapshot_at(), where there is one table only; 0: the
 * newest. Of options (may be NULL) those of S3 count, and mirror_parallelism. What was copied is checked as
 * meru_verify() does. dir is there whole when it returns, or, after an error or an interrupt, not at all. report may be
 * NULL. */
MERU_API int meru_clone(const char *source, const char *dir, const MeruOptions *options, int64_t version,
						const MeruWatch *watch, MeruCloneReport *report, char **err);

/* Waits until everything that is in files when it is called is at the mirror, for timeout_ms at most: then *reached is
 * 1, else 0, also at once where there is no mirror or it has stopped. Rows in memory are not waited for: meru_flush()
 * before it. meru_inspect() "mirror_status" tells more. watch may be NULL. */
MERU_API int meru_mirror_wait(const MeruHandle *db, uint64_t timeout_ms, const MeruWatch *watch, int *reached,
							  char **err);

/* An event in the life of the process's databases, for people. Strings are valid during the call. */
typedef struct MeruLogEvent {
	int64_t time_us;     /* microseconds since 1970-01-01 UTC */
	int32_t level;       /* 0 debug, 1 information, 2 warning, 3 error */
	const char *event;   /* flush, load, compaction, stall, write error, ...: later versions may add some */
	const char *path;    /* of the table's directory; may be empty */
	const char *message; /* for people */
	const char *fields;  /* figures, as a JSON object of strings and numbers */
} MeruLogEvent;
/* Called from a thread of the engine's, one call at a time, and not at the moment of the event but soon. It must not
 * call meru_log_unsubscribe(). Events that come much faster than they are taken are dropped. */
typedef void (*MeruLogFn)(void *ctx, const MeruLogEvent *event);
/* Has fn called with the events of all databases of the process, until meru_log_unsubscribe(). */
MERU_API int meru_log_subscribe(MeruLogFn fn, void *ctx, uint64_t *subscription, char **err);
/* When it returns, fn is not running and is not called any more. Does nothing for 0 and for what has ended already. */
MERU_API void meru_log_unsubscribe(uint64_t subscription);
/* Waits until the events so far were delivered, for a second at most. */
MERU_API void meru_log_drain(void);

/* What happened to the rows of the table: the changes with since < seq <= until (0: until now) in the order of their
 * sequence numbers, as a stream, which the caller releases. Each row: seq (uint64), op (utf8: insert, update, delete),
 * the key columns in key order, all columns as they were before ("before.name"), and after ("after.name"); the values
 * of an image that a change has not got are all NULL. Versions of a row that a flush has merged are folded into the one
 * after them. ErrInvalidArg where the changes since then are not kept any more; the message names the oldest since
 * there is. *next_since (may be NULL) is up to where the stream is complete: since of the next call. The work is done
 * in this call,
 * which watch (may be NULL) is for; rows that do not fit in memory are kept in temporary files until the release. */
MERU_API int meru_changes(const MeruHandle *db, uint64_t since, uint64_t until, const MeruWatch *watch,
						  uint64_t *next_since, struct ArrowArrayStream *out, char **err);

/* What there is to know of a database, as a stream of struct arrays, which the caller releases. Later versions may add
 * columns at the end. Counts and sizes are int64, sizes in bytes. By what:
 *   "stats"     name, value, unit (utf8): the numbers of meru_stats_json(); nested ones as "outer.inner"
 *   "files"     path (absolute), level, rows, deleted, bytes, seq_min, seq_max, key_min, key_max (text for people): the
 *               data files of the newest version
 *   "versions"  version, committed (timestamp, UTC), job, files, rows, bytes, seq: the manifests that are still kept,
 *               oldest first
 *   "options"   name, value (as meru_options_set() takes it; <hidden> for secrets), sticks (bool: stored beside the
 *               table once given)
 *   "mirror_status"  one row: destination, state (off, idle, uploading, retrying, stopped), mirror_seq, visible_seq,
 *               mirror_lag_secs (float64), alert (bool), bytes_pending, files_pending, bytes_uploaded, files_uploaded,
 *               manifests_uploaded, retries, last_error, last_error_at, last_success_at (timestamps, UTC): NULL where
 *               there was none */
MERU_API int meru_inspect(const MeruHandle *db, const char *what, struct ArrowArrayStream *out, char **err);

#ifdef __cplusplus
}
#endif

#endif /* MERUTABLE_H */
