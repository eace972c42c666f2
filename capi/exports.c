/* The functions of merutable.h: databases, rows and what goes with them. */
#include "exports.h"

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

void meru_options_set_interrupt(MeruOptions *options, MeruInterruptFn interrupt, void *ctx) {
	if (options && !capi_forked) {
		merugo_options_set_interrupt(HANDLE(options), interrupt, (uintptr_t)ctx);
	}
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
	return merugo_refresh(HANDLE(db), NULL, OUT(err));
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

int meru_refresh_watched(MeruHandle *db, const MeruWatch *watch, char **err) {
	REFUSE_FORKED(err);
	return merugo_refresh(HANDLE(db), (MeruWatch *)watch, OUT(err));
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
	return merugo_verify((char *)path, 0, (MeruWatch *)watch, out, OUT(err));
}

int meru_verify_with(const char *path, const MeruOptions *options, const MeruWatch *watch, struct ArrowArrayStream *out,
					 char **err) {
	REFUSE_FORKED(err);
	return merugo_verify((char *)path, HANDLE(options), (MeruWatch *)watch, out, OUT(err));
}

int meru_clone(const char *source, const char *dir, const MeruOptions *options, int64_t version, const MeruWatch *watch,
			   MeruCloneReport *report, char **err) {
	REFUSE_FORKED(err);
	return merugo_clone((char *)source, (char *)dir, HANDLE(options), version, (MeruWatch *)watch, report, OUT(err));
}

int meru_mirror_wait(const MeruHandle *db, uint64_t timeout_ms, const MeruWatch *watch, int *reached, char **err) {
	REFUSE_FORKED(err);
	return merugo_mirror_wait(HANDLE(db), timeout_ms, (MeruWatch *)watch, reached, OUT(err));
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
