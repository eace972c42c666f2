/* The functions of merutable.h. Each refuses a forked child and hands over to its Go half, merugo_…; handles cross as
 * plain integers, because they are numbers and no addresses (handle.go). The compiler checks these definitions against
 * the header, and the calls against what cgo generated. */
#include "capi.h"
#include "_cgo_export.h"

/* An out parameter as its Go half takes it: Go writes addresses of C memory there as integers, so that its garbage
 * collector never looks at what the caller's memory held before. */
#define OUT(p)    ((uintptr_t *)(p))
#define HANDLE(h) ((uintptr_t)(h))
#define REFUSE_FORKED(err)                                                                                             \
	do {                                                                                                               \
		if (capi_forked) {                                                                                             \
			return capi_refuse_forked(err);                                                                            \
		}                                                                                                              \
	} while (0)

/* ---- opening and closing ---- */

int meru_open(const MeruOpenOptions *opts, MeruRuntime *runtime, MeruHandle **db, char **err) {
	(void)runtime;
	REFUSE_FORKED(err);
	return merugo_open((MeruOpenOptions *)opts, OUT(db), OUT(err));
}

int meru_open_existing(const char *path, uint8_t read_only, MeruRuntime *runtime, MeruHandle **db, char **err) {
	(void)runtime;
	REFUSE_FORKED(err);
	return merugo_open_existing((char *)path, read_only, OUT(db), OUT(err));
}

int meru_open_with(const char *path, const MeruOptions *options, MeruHandle **db, char **err) {
	REFUSE_FORKED(err);
	return merugo_open_with((char *)path, HANDLE(options), OUT(db), OUT(err));
}

int meru_open_reader(const char *path, MeruHandle **db, char **err) {
	REFUSE_FORKED(err);
	return merugo_open_reader((char *)path, OUT(db), OUT(err));
}

int meru_reader_cache_set(uintptr_t handles, char **err) {
	REFUSE_FORKED(err);
	return merugo_reader_cache_set(handles, OUT(err));
}

int meru_close(MeruHandle *db, char **err) {
	REFUSE_FORKED(err);
	return merugo_close(HANDLE(db), OUT(err));
}

void meru_free(MeruHandle *db) {
	if (db && !capi_forked) {
		merugo_free(HANDLE(db));
	}
}

int meru_close_free(MeruHandle *db, char **err) {
	REFUSE_FORKED(err);
	return merugo_close_free(HANDLE(db), OUT(err));
}

int meru_is_closed(const MeruHandle *db) {
	if (!db || capi_forked) {
		return 1;
	}
	return merugo_is_closed(HANDLE(db));
}

char *meru_catalog_path(const MeruHandle *db) {
	if (!db || capi_forked) {
		return NULL;
	}
	return (char *)merugo_catalog_path(HANDLE(db));
}

/* ---- rows ---- */

int meru_put(MeruHandle *db, const MeruRow *row, uint64_t *seq, char **err) {
	REFUSE_FORKED(err);
	return merugo_put(HANDLE(db), (MeruRow *)row, seq, OUT(err));
}

int meru_put_batch(MeruHandle *db, const MeruRow *rows, uintptr_t n, uint64_t *seq, char **err) {
	REFUSE_FORKED(err);
	return merugo_put_batch(HANDLE(db), (MeruRow *)rows, n, seq, OUT(err));
}

int meru_delete(MeruHandle *db, const MeruValue *pk, uintptr_t n, uint64_t *seq, char **err) {
	REFUSE_FORKED(err);
	return merugo_delete(HANDLE(db), (MeruValue *)pk, n, seq, OUT(err));
}

int meru_get(const MeruHandle *db, const MeruValue *pk, uintptr_t n, int *found, MeruRow **row, char **err) {
	REFUSE_FORKED(err);
	return merugo_get(HANDLE(db), (MeruValue *)pk, n, found, OUT(row), OUT(err));
}

int meru_multi_get(const MeruHandle *db, const MeruRow *keys, uintptr_t n, MeruScanResult **result, char **err) {
	REFUSE_FORKED(err);
	return merugo_multi_get(HANDLE(db), (MeruRow *)keys, n, OUT(result), OUT(err));
}

int meru_scan(const MeruHandle *db, const MeruValue *start, uintptr_t start_count, const MeruValue *end,
			  uintptr_t end_count, MeruScanResult **result, char **err) {
	REFUSE_FORKED(err);
	return merugo_scan(HANDLE(db), (MeruValue *)start, start_count, (MeruValue *)end, end_count, OUT(result), OUT(err));
}

int meru_flush(MeruHandle *db, char **err) {
	REFUSE_FORKED(err);
	return merugo_flush(HANDLE(db), OUT(err));
}

int meru_refresh(MeruHandle *db, char **err) {
	REFUSE_FORKED(err);
	return merugo_refresh(HANDLE(db), OUT(err));
}

int meru_stats(const MeruHandle *db, MeruStats *stats, char **err) {
	REFUSE_FORKED(err);
	return merugo_stats(HANDLE(db), stats, OUT(err));
}

int meru_stats_json(const MeruHandle *db, char **json, char **err) {
	REFUSE_FORKED(err);
	return merugo_stats_json(HANDLE(db), OUT(json), OUT(err));
}

int meru_compact(MeruHandle *db, char **err) {
	REFUSE_FORKED(err);
	return merugo_compact(HANDLE(db), NULL, 0, NULL, 0, NULL, 0, OUT(err));
}

int meru_compact_range(MeruHandle *db, const MeruValue *lower, uintptr_t lower_count, const MeruValue *upper,
					   uintptr_t upper_count, MeruInterruptFn interrupt, void *ctx, char **err) {
	REFUSE_FORKED(err);
	return merugo_compact(HANDLE(db), (MeruValue *)lower, lower_count, (MeruValue *)upper, upper_count, interrupt,
						  (uintptr_t)ctx, OUT(err));
}

int meru_collect_garbage(MeruHandle *db, uint8_t dry_run, struct ArrowArrayStream *out, char **err) {
	REFUSE_FORKED(err);
	return merugo_collect_garbage(HANDLE(db), dry_run, out, OUT(err));
}

int meru_flush_watched(MeruHandle *db, const MeruWatch *watch, char **err) {
	REFUSE_FORKED(err);
	return merugo_flush_watched(HANDLE(db), (MeruWatch *)watch, OUT(err));
}

int meru_compact_watched(MeruHandle *db, const MeruWatch *watch, char **err) {
	REFUSE_FORKED(err);
	return merugo_compact_watched(HANDLE(db), (MeruWatch *)watch, OUT(err));
}

int meru_verify(const char *path, const MeruWatch *watch, struct ArrowArrayStream *out, char **err) {
	REFUSE_FORKED(err);
	return merugo_verify((char *)path, (MeruWatch *)watch, out, OUT(err));
}

int meru_log_subscribe(MeruLogFn fn, void *ctx, uint64_t *subscription, char **err) {
	REFUSE_FORKED(err);
	return merugo_log_subscribe(fn, (uintptr_t)ctx, subscription, OUT(err));
}

void meru_log_unsubscribe(uint64_t subscription) {
	if (subscription && !capi_forked) {
		merugo_log_unsubscribe(subscription);
	}
}

void meru_log_drain(void) {
	if (!capi_forked) {
		merugo_log_drain();
	}
}

int meru_changes(const MeruHandle *db, uint64_t since, uint64_t until, const MeruWatch *watch, uint64_t *next_since,
				 struct ArrowArrayStream *out, char **err) {
	REFUSE_FORKED(err);
	return merugo_changes(HANDLE(db), since, until, (MeruWatch *)watch, next_since, out, OUT(err));
}

int meru_inspect(const MeruHandle *db, const char *what, struct ArrowArrayStream *out, char **err) {
	REFUSE_FORKED(err);
	return merugo_inspect(HANDLE(db), (char *)what, out, OUT(err));
}

uint64_t meru_state_version(const MeruHandle *db) {
	if (!db || capi_forked) {
		return 0;
	}
	return merugo_state_version(HANDLE(db));
}

int meru_manifest_info(MeruRuntime *runtime, const char *path, MeruManifestInfo **info, char **err) {
	(void)runtime;
	REFUSE_FORKED(err);
	return merugo_manifest_info((char *)path, OUT(info), OUT(err));
}

/* ---- freeing: C memory only, so these work in a forked child too ---- */

void meru_row_free(MeruRow *row) {
	capi_object_free(row);
}

void meru_scan_result_free(MeruScanResult *result) {
	capi_object_free(result);
}

void meru_manifest_info_free(MeruManifestInfo *info) {
	capi_object_free(info);
}

void meru_free_string(char *string) {
	free(string);
}

/* ---- the runtime of the first generation ---- */

/* There is nothing behind a runtime: all get the address of this. */
static char the_runtime;

MeruRuntime *meru_runtime_new(uintptr_t threads, char **err) {
	(void)threads;
	if (capi_forked) {
		capi_refuse_forked(err);
		return NULL;
	}
	if (err) {
		*err = NULL;
	}
	return (MeruRuntime *)&the_runtime;
}

void meru_runtime_free(MeruRuntime *runtime) {
	(void)runtime;
}

/* ---- versions ---- */

const char *meru_version(void) {
	static const char *volatile version;
	const char *known = version;
	if (!known) {
		if (capi_forked) {
			return "";
		}
		known = version = (const char *)merugo_version();
	}
	return known;
}

uint32_t meru_abi_version(void) {
	return MERU_ABI_MAJOR * 65536u + MERU_ABI_MINOR;
}

/* ---- options ---- */

MeruOptions *meru_options_new(void) {
	return capi_forked ? NULL : (MeruOptions *)merugo_options_new();
}

void meru_options_free(MeruOptions *options) {
	if (options && !capi_forked) {
		merugo_options_free(HANDLE(options));
	}
}

int meru_options_set(MeruOptions *options, const char *key, const char *value, char **err) {
	REFUSE_FORKED(err);
	return merugo_options_set(HANDLE(options), (char *)key, (char *)value, OUT(err));
}

/* ---- table schemas ---- */

MeruTableSchema *meru_table_schema_new(const char *table_name) {
	return capi_forked ? NULL : (MeruTableSchema *)merugo_table_schema_new((char *)table_name);
}

int meru_table_schema_add_column(MeruTableSchema *schema, const MeruColumnInfo *info, char **err) {
	REFUSE_FORKED(err);
	return merugo_table_schema_add_column(HANDLE(schema), (MeruColumnInfo *)info, OUT(err));
}

int meru_table_schema_add_key(MeruTableSchema *schema, uintptr_t column_index, char **err) {
	REFUSE_FORKED(err);
	return merugo_table_schema_add_key(HANDLE(schema), column_index, OUT(err));
}

int meru_table_schema_validate(const MeruTableSchema *schema, char **err) {
	REFUSE_FORKED(err);
	return merugo_table_schema_validate(HANDLE(schema), OUT(err));
}

const char *meru_table_schema_name(const MeruTableSchema *schema) {
	return capi_forked ? NULL : (const char *)merugo_table_schema_name(HANDLE(schema));
}

uintptr_t meru_table_schema_column_count(const MeruTableSchema *schema) {
	return capi_forked ? 0 : merugo_table_schema_column_count(HANDLE(schema));
}

int meru_table_schema_column(const MeruTableSchema *schema, uintptr_t column_index, MeruColumnInfo *info, char **err) {
	REFUSE_FORKED(err);
	return merugo_table_schema_column(HANDLE(schema), column_index, info, OUT(err));
}

uintptr_t meru_table_schema_key_count(const MeruTableSchema *schema) {
	return capi_forked ? 0 : merugo_table_schema_key_count(HANDLE(schema));
}

uintptr_t meru_table_schema_key_column(const MeruTableSchema *schema, uintptr_t key_position) {
	return capi_forked ? UINTPTR_MAX : merugo_table_schema_key_column(HANDLE(schema), key_position);
}

int meru_table_schema_add_check(MeruTableSchema *schema, const char *sql, char **err) {
	REFUSE_FORKED(err);
	return merugo_table_schema_add_check(HANDLE(schema), (char *)sql, OUT(err));
}

uintptr_t meru_table_schema_check_count(const MeruTableSchema *schema) {
	return capi_forked ? 0 : merugo_table_schema_check_count(HANDLE(schema));
}

const char *meru_table_schema_check(const MeruTableSchema *schema, uintptr_t index) {
	return capi_forked ? NULL : (const char *)merugo_table_schema_check(HANDLE(schema), index);
}

void meru_table_schema_free(MeruTableSchema *schema) {
	if (schema && !capi_forked) {
		merugo_table_schema_free(HANDLE(schema));
	}
}

int meru_table_schema_initial_defaults(const MeruTableSchema *schema, int *found, struct ArrowArray *out, char **err) {
	REFUSE_FORKED(err);
	return merugo_table_schema_initial_defaults(HANDLE(schema), found, out, OUT(err));
}

const char *meru_table_schema_comment(const MeruTableSchema *schema, uintptr_t column_index) {
	return capi_forked ? NULL : (const char *)merugo_table_schema_comment(HANDLE(schema), column_index);
}

int meru_table_schema_set_comment(MeruTableSchema *schema, uintptr_t column_index, const char *comment, char **err) {
	REFUSE_FORKED(err);
	return merugo_table_schema_set_comment(HANDLE(schema), column_index, (char *)comment, OUT(err));
}

int meru_create_table(MeruHandle *db, const MeruTableSchema *schema, char **err) {
	REFUSE_FORKED(err);
	return merugo_create_table(HANDLE(db), HANDLE(schema), OUT(err));
}

int meru_drop_table(MeruHandle *db, char **err) {
	REFUSE_FORKED(err);
	return merugo_drop_table(HANDLE(db), OUT(err));
}

int meru_tables(const MeruHandle *db, MeruTableList **list, char **err) {
	REFUSE_FORKED(err);
	return merugo_tables(HANDLE(db), OUT(list), OUT(err));
}

void meru_table_list_free(MeruTableList *list) {
	capi_object_free(list);
}

int meru_open_table(const MeruHandle *db, const char *name, MeruHandle **table, char **err) {
	REFUSE_FORKED(err);
	return merugo_open_table(HANDLE(db), (char *)name, OUT(table), OUT(err));
}

int meru_open_table_id(const MeruHandle *db, uint64_t id, MeruHandle **table, char **err) {
	REFUSE_FORKED(err);
	return merugo_open_table_id(HANDLE(db), id, OUT(table), OUT(err));
}

int meru_rename_table(MeruHandle *db, const char *name, char **err) {
	REFUSE_FORKED(err);
	return merugo_rename_table(HANDLE(db), (char *)name, OUT(err));
}

uint64_t meru_catalog_version(const MeruHandle *db) {
	if (!db || capi_forked) {
		return 0;
	}
	return merugo_catalog_version(HANDLE(db));
}

int meru_snapshot_all(const MeruHandle *db, MeruSnapshotSet **set, char **err) {
	REFUSE_FORKED(err);
	return merugo_snapshot_all(HANDLE(db), OUT(set), OUT(err));
}

int meru_snapshot_of(const MeruSnapshotSet *set, uint64_t id, struct MeruSnapshot **snapshot, char **err) {
	REFUSE_FORKED(err);
	return merugo_snapshot_of(HANDLE(set), id, OUT(snapshot), OUT(err));
}

void meru_snapshot_set_free(MeruSnapshotSet *set) {
	if (set && !capi_forked) {
		merugo_snapshot_set_free(HANDLE(set));
	}
}

int meru_table_schema_get(const MeruHandle *db, MeruTableSchema **schema, char **err) {
	REFUSE_FORKED(err);
	return merugo_table_schema_get(HANDLE(db), OUT(schema), OUT(err));
}

/* ---- changes of a table's schema ---- */

MeruAlter *meru_alter_new(void) {
	return capi_forked ? NULL : (MeruAlter *)merugo_alter_new();
}

void meru_alter_free(MeruAlter *alter) {
	if (alter && !capi_forked) {
		merugo_alter_free(HANDLE(alter));
	}
}

int meru_alter_add_column(MeruAlter *alter, const MeruColumnDef *column, uint8_t if_not_exists, char **err) {
	REFUSE_FORKED(err);
	return merugo_alter_add_column(HANDLE(alter), (MeruColumnDef *)column, if_not_exists, OUT(err));
}

int meru_alter_add_column_arrow(MeruAlter *alter, const MeruColumnInfo *info, struct ArrowArray *initial,
								const struct ArrowSchema *schema, uint8_t if_not_exists, char **err) {
	REFUSE_FORKED(err);
	return merugo_alter_add_column_arrow(HANDLE(alter), (MeruColumnInfo *)info, initial, (struct ArrowSchema *)schema,
										 if_not_exists, OUT(err));
}

int meru_alter_drop_column(MeruAlter *alter, const char *name, uint8_t if_exists, char **err) {
	REFUSE_FORKED(err);
	return merugo_alter_drop_column(HANDLE(alter), (char *)name, if_exists, OUT(err));
}

int meru_alter_rename_column(MeruAlter *alter, const char *name, const char *new_name, char **err) {
	REFUSE_FORKED(err);
	return merugo_alter_rename_column(HANDLE(alter), (char *)name, (char *)new_name, OUT(err));
}

int meru_alter_rename_table(MeruAlter *alter, const char *new_name, char **err) {
	REFUSE_FORKED(err);
	return merugo_alter_rename_table(HANDLE(alter), (char *)new_name, OUT(err));
}

int meru_alter_set_default(MeruAlter *alter, const char *name, const char *default_sql, char **err) {
	REFUSE_FORKED(err);
	return merugo_alter_set_default(HANDLE(alter), (char *)name, (char *)default_sql, OUT(err));
}

int meru_alter_set_not_null(MeruAlter *alter, const char *name, uint8_t not_null, char **err) {
	REFUSE_FORKED(err);
	return merugo_alter_set_not_null(HANDLE(alter), (char *)name, not_null, OUT(err));
}

int meru_alter_set_type(MeruAlter *alter, const MeruColumnInfo *info, char **err) {
	REFUSE_FORKED(err);
	return merugo_alter_set_type(HANDLE(alter), (MeruColumnInfo *)info, OUT(err));
}

int meru_alter_set_checks(MeruAlter *alter, const char *const *sql, uintptr_t count, char **err) {
	REFUSE_FORKED(err);
	return merugo_alter_set_checks(HANDLE(alter), (char **)sql, count, OUT(err));
}

int meru_alter_set_comment(MeruAlter *alter, const char *column, const char *comment, char **err) {
	REFUSE_FORKED(err);
	return merugo_alter_set_comment(HANDLE(alter), (char *)column, (char *)comment, OUT(err));
}

int meru_alter_table(MeruHandle *db, const MeruAlter *alter, char **err) {
	REFUSE_FORKED(err);
	return merugo_alter_table(HANDLE(db), HANDLE(alter), OUT(err));
}

int meru_arrow_schema(const MeruTableSchema *schema, struct ArrowSchema *out, char **err) {
	REFUSE_FORKED(err);
	return merugo_arrow_schema(HANDLE(schema), out, OUT(err));
}

/* ---- writing in bulk: arrays are taken in every case ---- */

int meru_write_begin(MeruHandle *db, MeruWrite **write, char **err) {
	REFUSE_FORKED(err);
	return merugo_write_begin(HANDLE(db), OUT(write), OUT(err));
}

int meru_write_begin_table(MeruHandle *db, const MeruTableSchema *schema, uint8_t replace, MeruWrite **write,
						   char **err) {
	REFUSE_FORKED(err);
	return merugo_write_begin_table(HANDLE(db), HANDLE(schema), replace, OUT(write), OUT(err));
}

void meru_write_set_interrupt(MeruWrite *write, MeruInterruptFn interrupt, void *ctx) {
	if (write && !capi_forked) {
		merugo_write_set_interrupt(HANDLE(write), interrupt, HANDLE(ctx));
	}
}

int meru_write_set_snapshot(MeruWrite *write, const struct MeruSnapshot *snapshot, char **err) {
	REFUSE_FORKED(err);
	return merugo_write_set_snapshot(HANDLE(write), HANDLE(snapshot), OUT(err));
}

int meru_write_put_arrow(MeruWrite *write, struct ArrowArray *rows, const struct ArrowSchema *schema, char **err) {
	if (capi_forked) {
		capi_array_release(rows);
		return capi_refuse_forked(err);
	}
	return merugo_write_put_arrow(HANDLE(write), rows, (struct ArrowSchema *)schema, OUT(err));
}

int meru_write_delete_arrow(MeruWrite *write, struct ArrowArray *keys, const struct ArrowSchema *schema, char **err) {
	if (capi_forked) {
		capi_array_release(keys);
		return capi_refuse_forked(err);
	}
	return merugo_write_delete_arrow(HANDLE(write), keys, (struct ArrowSchema *)schema, OUT(err));
}

int meru_write_prepare_put_arrow(MeruWrite *write, struct ArrowArray *rows, const struct ArrowSchema *schema,
								 MeruBlock **block, char **err) {
	if (capi_forked) {
		capi_array_release(rows);
		return capi_refuse_forked(err);
	}
	return merugo_write_prepare_put_arrow(HANDLE(write), rows, (struct ArrowSchema *)schema, OUT(block), OUT(err));
}

int meru_write_prepare_delete_arrow(MeruWrite *write, struct ArrowArray *keys, const struct ArrowSchema *schema,
									MeruBlock **block, char **err) {
	if (capi_forked) {
		capi_array_release(keys);
		return capi_refuse_forked(err);
	}
	return merugo_write_prepare_delete_arrow(HANDLE(write), keys, (struct ArrowSchema *)schema, OUT(block), OUT(err));
}

int meru_write_append(MeruWrite *write, MeruBlock *block, char **err) {
	REFUSE_FORKED(err);
	return merugo_write_append(HANDLE(write), HANDLE(block), OUT(err));
}

uint64_t meru_block_bytes(const MeruBlock *block) {
	return block && !capi_forked ? merugo_block_bytes(HANDLE(block)) : 0;
}

void meru_block_free(MeruBlock *block) {
	if (block && !capi_forked) {
		merugo_block_free(HANDLE(block));
	}
}

int meru_write_commit(MeruWrite *write, uint64_t *seq, char **err) {
	REFUSE_FORKED(err);
	return merugo_write_commit(HANDLE(write), seq, OUT(err));
}

void meru_write_free(MeruWrite *write) {
	if (write && !capi_forked) {
		merugo_write_free(HANDLE(write));
	}
}

/* ---- transactions of several statements ---- */

int meru_txn_begin(MeruHandle *db, MeruTxn **txn, char **err) {
	REFUSE_FORKED(err);
	return merugo_txn_begin(HANDLE(db), OUT(txn), OUT(err));
}

void meru_txn_set_interrupt(MeruTxn *txn, MeruInterruptFn interrupt, void *ctx) {
	if (txn && !capi_forked) {
		merugo_txn_set_interrupt(HANDLE(txn), interrupt, HANDLE(ctx));
	}
}

int meru_txn_schema(MeruTxn *txn, const char *table, MeruTableSchema **schema, char **err) {
	REFUSE_FORKED(err);
	return merugo_txn_schema(HANDLE(txn), (char *)table, OUT(schema), OUT(err));
}

int meru_txn_snapshot(MeruTxn *txn, const char *table, struct MeruSnapshot **snapshot, char **err) {
	REFUSE_FORKED(err);
	return merugo_txn_snapshot(HANDLE(txn), (char *)table, OUT(snapshot), OUT(err));
}

int meru_txn_write(MeruTxn *txn, const char *table, MeruWrite **write, char **err) {
	REFUSE_FORKED(err);
	return merugo_txn_write(HANDLE(txn), (char *)table, OUT(write), OUT(err));
}

int meru_txn_create_table(MeruTxn *txn, const MeruTableSchema *schema, char **err) {
	REFUSE_FORKED(err);
	return merugo_txn_create_table(HANDLE(txn), HANDLE(schema), OUT(err));
}

int meru_txn_drop_table(MeruTxn *txn, const char *table, char **err) {
	REFUSE_FORKED(err);
	return merugo_txn_drop_table(HANDLE(txn), (char *)table, OUT(err));
}

int meru_txn_alter_table(MeruTxn *txn, const char *table, const MeruAlter *alter, char **err) {
	REFUSE_FORKED(err);
	return merugo_txn_alter_table(HANDLE(txn), (char *)table, HANDLE(alter), OUT(err));
}

int meru_txn_write_table(MeruTxn *txn, const MeruTableSchema *schema, uint8_t replace, MeruWrite **write, char **err) {
	REFUSE_FORKED(err);
	return merugo_txn_write_table(HANDLE(txn), HANDLE(schema), replace, OUT(write), OUT(err));
}

int meru_txn_commit(MeruTxn *txn, uint64_t *seq, char **err) {
	REFUSE_FORKED(err);
	return merugo_txn_commit(HANDLE(txn), seq, OUT(err));
}

void meru_txn_rollback(MeruTxn *txn) {
	if (txn && !capi_forked) {
		merugo_txn_rollback(HANDLE(txn));
	}
}

void meru_txn_free(MeruTxn *txn) {
	if (txn && !capi_forked) {
		merugo_txn_free(HANDLE(txn));
	}
}

int meru_put_arrow(MeruHandle *db, struct ArrowArray *rows, const struct ArrowSchema *schema, uint64_t *seq,
				   char **err) {
	if (capi_forked) {
		capi_array_release(rows);
		return capi_refuse_forked(err);
	}
	return merugo_put_arrow(HANDLE(db), rows, (struct ArrowSchema *)schema, seq, OUT(err));
}

/* ---- snapshots and scans ---- */

int meru_snapshot_acquire(const MeruHandle *db, MeruSnapshot **snapshot, char **err) {
	REFUSE_FORKED(err);
	return merugo_snapshot_acquire(HANDLE(db), OUT(snapshot), OUT(err));
}

int meru_snapshot_at(const MeruHandle *db, int64_t version, MeruSnapshot **snapshot, char **err) {
	REFUSE_FORKED(err);
	return merugo_snapshot_at(HANDLE(db), version, OUT(snapshot), OUT(err));
}

int meru_snapshot_as_of(const MeruHandle *db, int64_t timestamp_us, MeruSnapshot **snapshot, char **err) {
	REFUSE_FORKED(err);
	return merugo_snapshot_as_of(HANDLE(db), timestamp_us, OUT(snapshot), OUT(err));
}

void meru_snapshot_release(MeruSnapshot *snapshot) {
	if (snapshot && !capi_forked) {
		merugo_snapshot_release(HANDLE(snapshot));
	}
}

int meru_snapshot_info(const MeruSnapshot *snapshot, MeruSnapshotInfo *info, char **err) {
	REFUSE_FORKED(err);
	return merugo_snapshot_info(HANDLE(snapshot), info, OUT(err));
}

int meru_snapshot_schema(const MeruSnapshot *snapshot, MeruTableSchema **schema, char **err) {
	REFUSE_FORKED(err);
	return merugo_snapshot_schema(HANDLE(snapshot), OUT(schema), OUT(err));
}

int meru_snapshot_file(const MeruSnapshot *snapshot, uintptr_t index, MeruFileInfo *info, char **err) {
	REFUSE_FORKED(err);
	return merugo_snapshot_file(HANDLE(snapshot), index, info, OUT(err));
}

int meru_snapshot_data_file(const MeruSnapshot *snapshot, uintptr_t index, MeruDataFile *file, char **err) {
	REFUSE_FORKED(err);
	return merugo_snapshot_data_file(HANDLE(snapshot), index, file, OUT(err));
}

int meru_snapshot_count(const MeruSnapshot *snapshot, uint64_t *rows, char **err) {
	REFUSE_FORKED(err);
	return merugo_snapshot_count(HANDLE(snapshot), rows, OUT(err));
}

int meru_snapshot_column_stats(const MeruSnapshot *snapshot, uintptr_t column, uint8_t exact, MeruColumnStats *stats,
							   char **err) {
	REFUSE_FORKED(err);
	return merugo_snapshot_column_stats(HANDLE(snapshot), column, exact, stats, OUT(err));
}

int meru_snapshot_deletes(const MeruSnapshot *snapshot, uintptr_t index, const uint32_t **positions, uintptr_t *count,
						  char **err) {
	REFUSE_FORKED(err);
	return merugo_snapshot_deletes(HANDLE(snapshot), index, OUT(positions), count, OUT(err));
}

int meru_snapshot_overlay(const MeruSnapshot *snapshot, const uint32_t *columns, uintptr_t column_count,
						  struct ArrowArrayStream *out, char **err) {
	REFUSE_FORKED(err);
	return merugo_snapshot_overlay(HANDLE(snapshot), NULL, (uint32_t *)columns, column_count, out, OUT(err));
}

int meru_snapshot_overlay_range(const MeruSnapshot *snapshot, const MeruScanRange *range, const uint32_t *columns,
								uintptr_t column_count, struct ArrowArrayStream *out, char **err) {
	REFUSE_FORKED(err);
	return merugo_snapshot_overlay(HANDLE(snapshot), (MeruScanRange *)range, (uint32_t *)columns, column_count, out,
								   OUT(err));
}

int meru_snapshot_overlay_pieces(const MeruSnapshot *snapshot, uintptr_t *count, char **err) {
	REFUSE_FORKED(err);
	return merugo_snapshot_overlay_pieces(HANDLE(snapshot), count, OUT(err));
}

int meru_snapshot_overlay_piece(const MeruSnapshot *snapshot, uintptr_t piece, const uint32_t *columns,
								uintptr_t column_count, struct ArrowArrayStream *out, char **err) {
	REFUSE_FORKED(err);
	return merugo_snapshot_overlay_piece(HANDLE(snapshot), piece, (uint32_t *)columns, column_count, out, OUT(err));
}

int meru_snapshot_part(const MeruSnapshot *snapshot, struct ArrowArray *lower, const struct ArrowSchema *lower_schema,
					   uint8_t lower_exclusive, struct ArrowArray *upper, const struct ArrowSchema *upper_schema,
					   uint8_t upper_exclusive, MeruSnapshot **part, char **err) {
	if (capi_forked) {
		capi_array_release(lower);
		capi_array_release(upper);
		return capi_refuse_forked(err);
	}
	return merugo_snapshot_part(HANDLE(snapshot), lower, upper, (struct ArrowSchema *)lower_schema,
								(struct ArrowSchema *)upper_schema, lower_exclusive, upper_exclusive, OUT(part),
								OUT(err));
}

int meru_snapshot_part_of_keys(const MeruSnapshot *snapshot, struct ArrowArray *prefixes,
							   const struct ArrowSchema *schema, MeruSnapshot **part, char **err) {
	if (capi_forked) {
		capi_array_release(prefixes);
		return capi_refuse_forked(err);
	}
	return merugo_snapshot_part_of_keys(HANDLE(snapshot), prefixes, (struct ArrowSchema *)schema, OUT(part), OUT(err));
}

int meru_part_leave_files(MeruSnapshot *part, char **err) {
	REFUSE_FORKED(err);
	return merugo_part_leave_files(HANDLE(part), OUT(err));
}

int meru_snapshot_file_meets(const MeruSnapshot *snapshot, uintptr_t index, struct ArrowArray *lower,
							 const struct ArrowSchema *lower_schema, uint8_t lower_exclusive, struct ArrowArray *upper,
							 const struct ArrowSchema *upper_schema, uint8_t upper_exclusive, int *meets, char **err) {
	if (capi_forked) {
		capi_array_release(lower);
		capi_array_release(upper);
		return capi_refuse_forked(err);
	}
	return merugo_snapshot_file_meets(HANDLE(snapshot), index, lower, upper, (struct ArrowSchema *)lower_schema,
									  (struct ArrowSchema *)upper_schema, lower_exclusive, upper_exclusive, meets,
									  OUT(err));
}

int meru_snapshot_get(const MeruSnapshot *snapshot, struct ArrowArray *key, const struct ArrowSchema *schema,
					  int *found, struct ArrowArray *out, char **err) {
	if (capi_forked) {
		capi_array_release(key);
		return capi_refuse_forked(err);
	}
	return merugo_snapshot_get(HANDLE(snapshot), key, (struct ArrowSchema *)schema, found, out, OUT(err));
}

int meru_snapshot_multi_get(const MeruSnapshot *snapshot, struct ArrowArray *keys, const struct ArrowSchema *schema,
							uint8_t *found, struct ArrowArray *out, char **err) {
	if (capi_forked) {
		capi_array_release(keys);
		return capi_refuse_forked(err);
	}
	return merugo_snapshot_multi_get(HANDLE(snapshot), keys, (struct ArrowSchema *)schema, found, out, OUT(err));
}

int meru_scan_arrow(const MeruSnapshot *snapshot, const MeruScanRange *range, const uint32_t *columns,
					uintptr_t column_count, struct ArrowArrayStream *out, char **err) {
	REFUSE_FORKED(err);
	return merugo_scan_arrow(HANDLE(snapshot), (MeruScanRange *)range, (uint32_t *)columns, column_count, out,
							 OUT(err));
}
