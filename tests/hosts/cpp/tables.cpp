// Many tables in one database.
#include "kit.hpp"

namespace {

MeruTableSchema *NewSchema(const char *name) {
	auto schema = meru_table_schema_new(name);
	MeruColumnInfo column{};
	column.name = "id";
	column.type = MeruColumnType_Int64;
	OK(meru_table_schema_add_column(schema, &column, &err));
	OK(meru_table_schema_add_key(schema, 0, &err));
	return schema;
}

void Create(MeruHandle *db, const char *name, MeruStatus status = MeruStatus_Ok) {
	auto schema = NewSchema(name);
	EXPECT(status, meru_create_table(db, schema, &err));
	meru_table_schema_free(schema);
}

std::string Names(MeruHandle *db) {
	MeruTableList *list = nullptr;
	OK(meru_tables(db, &list, &err));
	std::string out;
	for (uintptr_t i = 0; i < list->count; i++) {
		auto &t = list->tables[i];
		out += std::to_string(t.id) + ":" + t.name + " ";
		CHECK(t.directory && t.directory[0] == '/', "directory of table %s", t.name);
	}
	meru_table_list_free(list);
	return out;
}

void Put(MeruHandle *db, int64_t id) {
	MeruValue field = I64(id);
	MeruRow row{&field, 1};
	OK(meru_put(db, &row, nullptr, &err));
}

// Handles, names, and what each table has.
void Handles() {
	auto db = OpenSimple("tables");
	Create(db, "second");
	Create(db, "third");
	Create(db, "SECOND", MeruStatus_ErrAlreadyExists);
	CHECK(Names(db) == "0:t 1:second 2:third " || Names(db).find("1:second 2:third ") != std::string::npos, "%s",
		  Names(db).c_str());
	auto version = meru_catalog_version(db);
	MeruHandle *second = nullptr, *third = nullptr;
	OK(meru_open_table(db, "Second", &second, &err));
	OK(meru_open_table_id(db, 2, &third, &err));
	PutSimple(db, 1, "one", 1);
	Put(second, 1);
	Put(second, 2);
	Put(third, 7);
	CHECK(CountRows(db) == 1 && CountRows(second) == 2 && CountRows(third) == 1, "rows of the tables");
	CHECK(meru_catalog_version(db) == version, "the catalog's version changes with rows");

	MeruSnapshotSet *set = nullptr;
	OK(meru_snapshot_all(db, &set, &err));
	Put(second, 3);
	MeruSnapshot *old = nullptr;
	OK(meru_snapshot_of(set, 1, &old, &err));
	EXPECT_ABOUT(MeruStatus_ErrNotFound, "id 9", meru_snapshot_of(set, 9, &old, &err));
	MeruSnapshotInfo info;
	meru_snapshot_set_free(set);
	OK(meru_snapshot_info(old, &info, &err));
	CHECK(info.live_rows == 2, "%lld rows in the older snapshot", static_cast<long long>(info.live_rows));
	meru_snapshot_release(old);

	OK(meru_rename_table(second, "renamed", &err));
	CHECK(meru_catalog_version(db) != version, "the catalog's version stays the same");
	EXPECT_ABOUT(MeruStatus_ErrAlreadyExists, "third", meru_rename_table(second, "Third", &err));
	OK(meru_drop_table(third, &err));
	EXPECT(MeruStatus_ErrNotFound, meru_drop_table(third, &err));
	CHECK(CountRows(second) == 3, "a handle loses its table when that is renamed");
	meru_free(third);
	meru_free(second);
	OK(meru_close_free(db, &err));

	OK(meru_open_existing(In("tables").c_str(), 1, nullptr, &db, &err));
	OK(meru_open_table(db, "renamed", &second, &err));
	CHECK(CountRows(second) == 3, "rows after a re-open");
	EXPECT(MeruStatus_ErrReadOnly, meru_rename_table(second, "x", &err));
	EXPECT_ABOUT(MeruStatus_ErrNotFound, "third", meru_open_table(db, "third", &third, &err));
	meru_free(db); // before the table's
	CHECK(CountRows(second) == 3, "the table's handle outlives the database's");
	meru_free(second);
}

void Mistakes() {
	auto db = OpenSimple("tables-mistakes");
	MeruHandle *table = nullptr;
	MeruTableList *list = nullptr;
	MeruSnapshotSet *set = nullptr;
	MeruSnapshot *snapshot = nullptr;
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "name", meru_open_table(db, nullptr, &table, &err));
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "table", meru_open_table(db, "t", nullptr, &err));
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "id", meru_open_table_id(db, uint64_t(1) << 40, &table, &err));
	EXPECT_ABOUT(MeruStatus_ErrNotFound, "id 5", meru_open_table_id(db, 5, &table, &err));
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "db", meru_tables(nullptr, &list, &err));
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "list", meru_tables(db, nullptr, &err));
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "set", meru_snapshot_all(db, nullptr, &err));
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "set", meru_snapshot_of(nullptr, 0, &snapshot, &err));
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "name", meru_rename_table(db, nullptr, &err));
	EXPECT(MeruStatus_ErrInvalidArg, meru_rename_table(db, "", &err));
	CHECK(meru_catalog_version(nullptr) == 0, "the version of no database");
	OK(meru_snapshot_all(db, &set, &err));
	meru_snapshot_set_free(set);
	meru_snapshot_set_free(nullptr);
	meru_table_list_free(nullptr);
	OK(meru_close_free(db, &err));
}

} // namespace

void TableCases() {
	check_run("tables", Handles);
	check_run("tables mistakes", Mistakes);
}
