/* The functions of merutable.h: writes in bulk, transactions, snapshots, scans and reports. */
#include "exports.h"

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

int meru_snapshot_file_open(const MeruSnapshot *snapshot, uintptr_t index, MeruFile **file, char **err) {
	REFUSE_FORKED(err);
	return merugo_snapshot_file_open(HANDLE(snapshot), index, OUT(file), OUT(err));
}

void meru_file_set_interrupt(MeruFile *file, MeruInterruptFn interrupt, void *ctx) {
	if (file && !capi_forked) {
		merugo_file_set_interrupt(HANDLE(file), interrupt, (uintptr_t)ctx);
	}
}

uint64_t meru_file_size(const MeruFile *file) {
	if (!file || capi_forked) {
		return 0;
	}
	return merugo_file_size(HANDLE(file));
}

int meru_file_read(const MeruFile *file, uint64_t offset, void *buffer, uintptr_t n, uintptr_t *got, char **err) {
	REFUSE_FORKED(err);
	return merugo_file_read(HANDLE(file), offset, buffer, n, got, OUT(err));
}

void meru_file_free(MeruFile *file) {
	if (file && !capi_forked) {
		merugo_file_free(HANDLE(file));
	}
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

int meru_snapshot_file_stats(const MeruSnapshot *snapshot, uintptr_t column, const uintptr_t *files, uintptr_t count,
							 MeruColumnStats *stats, char **err) {
	REFUSE_FORKED(err);
	return merugo_snapshot_file_stats(HANDLE(snapshot), column, (uintptr_t *)files, count, stats, OUT(err));
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
