/* The functions of merutable.h: schemas of tables, and their changes. */
#include "exports.h"

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
