// Changing a table's schema.
#include "kit.hpp"

namespace {

struct Change {
	MeruAlter *alter = meru_alter_new();
	~Change() {
		meru_alter_free(alter);
	}
};

void Drop(MeruHandle *db, const char *name, MeruStatus status = MeruStatus_Ok) {
	Change c;
	OK(meru_alter_drop_column(c.alter, name, 0, &err));
	EXPECT(status, meru_alter_table(db, c.alter, &err));
}

std::string RowText(MeruHandle *db, int64_t id) {
	MeruValue key = I64(id);
	MeruRow *row = nullptr;
	int found = 0;
	OK(meru_get(db, &key, 1, &found, &row, &err));
	std::string out;
	for (uintptr_t i = 0; found && i < row->field_count; i++) {
		auto &v = row->fields[i];
		out += i ? "," : "";
		if (v.is_null) {
			out += "-";
		} else if (v.tag == MeruColumnType_Utf8) {
			out += std::string(reinterpret_cast<const char *>(v.inner.v_bytes.data), v.inner.v_bytes.len);
		} else if (v.tag == MeruColumnType_Int32) {
			out += std::to_string(v.inner.v_int32);
		} else if (v.tag == MeruColumnType_Double) {
			out += std::to_string(int(v.inner.v_double));
		} else {
			out += std::to_string(v.inner.v_int64);
		}
	}
	meru_row_free(row);
	return out;
}

// A row that is in a file, and one that is in memory, through all kinds of changes.
void Changes() {
	auto db = OpenSimple("alter");
	PutSimple(db, 1, "one", 1);
	OK(meru_flush(db, &err));
	PutSimple(db, 2, "two", 2);
	MeruSnapshot *before = nullptr;
	OK(meru_snapshot_acquire(db, &before, &err));

	MeruValue seven = I32(7), eight = I32(8);
	MeruColumnDef def{"n", MeruColumnType_Int32, 0, 0, &seven, &eight};
	{
		Change c;
		OK(meru_alter_add_column(c.alter, &def, 0, &err));
		OK(meru_alter_rename_column(c.alter, "S", "text", &err));
		OK(meru_alter_rename_table(c.alter, "renamed", &err));
		OK(meru_alter_set_default(c.alter, "text", "'x'", &err));
		OK(meru_alter_set_comment(c.alter, nullptr, "about the table", &err));
		OK(meru_alter_set_comment(c.alter, "n", "about n", &err));
		const char *checks[] = {"d > 0", "n > 0"};
		OK(meru_alter_set_checks(c.alter, checks, 2, &err));
		OK(meru_alter_table(db, c.alter, &err));
	}
	CHECK(RowText(db, 1) == "1,one,1,7" && RowText(db, 2) == "2,two,2,7", "%s; %s", RowText(db, 1).c_str(),
		  RowText(db, 2).c_str());
	MeruValue fields[4] = {I64(3), Text("three"), Dbl(3), Null()};
	MeruRow row{fields, 4};
	OK(meru_put(db, &row, nullptr, &err)); // the write default
	CHECK(RowText(db, 3) == "3,three,3,8", "%s", RowText(db, 3).c_str());

	MeruTableSchema *schema = nullptr;
	OK(meru_table_schema_get(db, &schema, &err));
	CHECK(std::string(meru_table_schema_name(schema)) == "renamed", "name");
	CHECK(std::string(meru_table_schema_comment(schema, UINTPTR_MAX)) == "about the table", "comment");
	CHECK(std::string(meru_table_schema_comment(schema, 3)) == "about n", "comment of a column");
	CHECK(meru_table_schema_check_count(schema) == 2 && std::string(meru_table_schema_check(schema, 1)) == "n > 0",
		  "checks");
	CHECK(!meru_table_schema_comment(schema, 0) && !meru_table_schema_comment(schema, 9), "no comment");
	MeruColumnInfo info{};
	OK(meru_table_schema_column(schema, 3, &info, &err));
	CHECK(std::string(info.name) == "n" && info.field_id == 4 && !info.nullable, "column n");
	int found = -1;
	ArrowArray initial{};
	OK(meru_table_schema_initial_defaults(schema, &found, &initial, &err));
	CHECK(found == 1 && initial.length == 1 && initial.n_children == 4 && At<int32_t>(*initial.children[3], 0) == 7 &&
			  IsValid(*initial.children[3], 0) && !IsValid(*initial.children[1], 0),
		  "initial defaults");
	Release(initial);
	auto plain = BuildSchema("t", {{"a", MeruColumnType_Int32}}, {});
	OK(meru_table_schema_initial_defaults(plain, &found, &initial, &err));
	CHECK(found == 0, "no initial default");
	meru_table_schema_free(plain);

	info.type = MeruColumnType_Int64; // its strings belong to the schema
	{
		Change c;
		OK(meru_alter_set_type(c.alter, &info, &err));
		OK(meru_alter_set_not_null(c.alter, "text", 1, &err));
		OK(meru_alter_table(db, c.alter, &err));
	}
	meru_table_schema_free(schema);
	CHECK(RowText(db, 1) == "1,one,1,7" && RowText(db, 3) == "3,three,3,8", "wider");
	Drop(db, "n");
	{
		// The same name is another column. Its default comes as an array.
		Change c;
		MeruColumnInfo other{};
		other.name = "n";
		other.type = MeruColumnType_Utf8;
		ArrowArray value{};
		Export(Struct({Strings<int32_t>({"new"})}, 1), &value);
		MeruTableSchema *one = BuildSchema("t", {{"n", MeruColumnType_Utf8}}, {});
		ArrowSchema types{};
		OK(meru_arrow_schema(one, &types, &err));
		meru_table_schema_free(one);
		OK(meru_alter_add_column_arrow(c.alter, &other, &value, &types, 0, &err));
		CHECK(!value.release, "the array is taken");
		Release(types);
		OK(meru_alter_table(db, c.alter, &err));
	}
	CHECK(RowText(db, 1) == "1,one,1,new" && RowText(db, 3) == "3,three,3,new", "%s", RowText(db, 1).c_str());
	CHECK(MERU_ABI_MINOR >= 3, "minor");
	OK(meru_snapshot_schema(before, &schema, &err));
	CHECK(meru_table_schema_column_count(schema) == 3, "the snapshot keeps its schema");
	meru_table_schema_free(schema);
	meru_snapshot_release(before);
	OK(meru_close_free(db, &err));

	OK(meru_open_existing(In("alter").c_str(), 0, nullptr, &db, &err));
	CHECK(RowText(db, 1) == "1,one,1,new" && RowText(db, 2) == "2,two,2,new", "opened again");
	OK(meru_close_free(db, &err));
}

// Mistakes change nothing, and say what is wrong.
void Mistakes() {
	auto db = OpenSimple("alter-mistakes");
	PutSimple(db, 1, "one", 1);
	MeruValue nulls[3] = {I64(2), Null(), Null()};
	MeruRow row{nulls, 3};
	OK(meru_put(db, &row, nullptr, &err));
	Drop(db, "id", MeruStatus_ErrInvalidArg);
	Drop(db, "nix", MeruStatus_ErrNotFound);
	auto refuse = [&](MeruStatus status, const char *about, const std::function<int(MeruAlter *, char **)> &add) {
		Change c;
		OK(meru_alter_rename_column(c.alter, "d", "e", &err));
		OK(add(c.alter, &err));
		EXPECT_ABOUT(status, about, meru_alter_table(db, c.alter, &err));
	};
	refuse(MeruStatus_ErrSchemaMismatch, "\"s\"",
		   [](MeruAlter *a, char **err) { return meru_alter_set_not_null(a, "s", 1, err); });
	refuse(MeruStatus_ErrAlreadyExists, "\"s\"",
		   [](MeruAlter *a, char **err) { return meru_alter_rename_column(a, "e", "S", err); });
	MeruColumnInfo info{};
	info.name = "s";
	info.type = MeruColumnType_Int32;
	refuse(MeruStatus_ErrUnsupported, "VARCHAR",
		   [&](MeruAlter *a, char **err) { return meru_alter_set_type(a, &info, err); });
	CHECK(RowText(db, 1) == "1,one,1", "unchanged");
	MeruTableSchema *schema = nullptr;
	OK(meru_table_schema_get(db, &schema, &err));
	OK(meru_table_schema_column(schema, 2, &info, &err));
	CHECK(std::string(info.name) == "d", "a change that failed left a trace");
	meru_table_schema_free(schema);

	Change c;
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "name", meru_alter_drop_column(c.alter, nullptr, 0, &err));
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "new_name", meru_alter_rename_column(c.alter, "s", nullptr, &err));
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "column", meru_alter_add_column(c.alter, nullptr, 0, &err));
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "info", meru_alter_set_type(c.alter, nullptr, &err));
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "alter", meru_alter_table(db, nullptr, &err));
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "db", meru_alter_table(nullptr, c.alter, &err));
	OK(meru_alter_table(db, c.alter, &err)); // nothing to do
	meru_alter_free(nullptr);

	MeruHandle *reader = nullptr;
	OK(meru_open_existing(In("alter-mistakes").c_str(), 1, nullptr, &reader, &err));
	Drop(reader, "s", MeruStatus_ErrReadOnly);
	meru_free(reader);
	OK(meru_close_free(db, &err));
}

// The columns that a transaction, or everybody (txn NULL), sees.
uintptr_t Columns(MeruHandle *db, MeruTxn *txn) {
	MeruTableSchema *schema = nullptr;
	if (txn) {
		OK(meru_txn_schema(txn, nullptr, &schema, &err));
	} else {
		OK(meru_table_schema_get(db, &schema, &err));
	}
	auto n = meru_table_schema_column_count(schema);
	meru_table_schema_free(schema);
	return n;
}

MeruTxn *BeginWith(MeruHandle *db, const Change &change) {
	MeruTxn *txn = nullptr;
	OK(meru_txn_begin(db, &txn, &err));
	OK(meru_txn_alter_table(txn, nullptr, change.alter, &err));
	return txn;
}

// In the transaction at once, for everybody with the commit, and with its rows.
void InTransaction() {
	auto db = OpenSimple("alter-txn");
	PutSimple(db, 1, "one", 1);
	OK(meru_flush(db, &err));
	PutSimple(db, 2, "two", 2);
	MeruValue seven = I32(7);
	MeruColumnDef def{"n", MeruColumnType_Int32, 0, 1, &seven, nullptr};
	Change add;
	OK(meru_alter_add_column(add.alter, &def, 0, &err));

	// given up
	auto txn = BeginWith(db, add);
	CHECK(Columns(db, txn) == 4 && Columns(db, nullptr) == 3, "seen by others before the commit");
	meru_txn_free(txn);
	CHECK(Columns(db, nullptr) == 3 && RowText(db, 1) == "1,one,1", "%s", RowText(db, 1).c_str());

	// with a row of the new shape
	txn = BeginWith(db, add);
	MeruTableSchema *own = nullptr;
	OK(meru_txn_schema(txn, "simple", &own, &err));
	ArrowSchema types{};
	OK(meru_arrow_schema(own, &types, &err));
	meru_table_schema_free(own);
	MeruWrite *write = nullptr;
	OK(meru_txn_write(txn, nullptr, &write, &err));
	ArrowArray rows{};
	Export(Struct({Fixed<int64_t>({3}), Strings<int32_t>({"three"}), Fixed<double>({3}), Fixed<int32_t>({33})}, 1),
		   &rows);
	OK(meru_write_put_arrow(write, &rows, &types, &err));
	OK(meru_write_commit(write, nullptr, &err));
	meru_write_free(write);
	Release(types);
	CHECK(Columns(db, nullptr) == 3 && CountRows(db) == 2, "before the commit");
	OK(meru_txn_commit(txn, nullptr, &err));
	meru_txn_free(txn);
	CHECK(RowText(db, 1) == "1,one,1,7" && RowText(db, 2) == "2,two,2,7" && RowText(db, 3) == "3,three,3,33",
		  "%s; %s; %s", RowText(db, 1).c_str(), RowText(db, 2).c_str(), RowText(db, 3).c_str());
	OK(meru_close_free(db, &err));
	db = Open(In("alter-txn"));
	CHECK(RowText(db, 3) == "3,three,3,33", "after a reopen: %s", RowText(db, 3).c_str());

	Change rename;
	OK(meru_alter_rename_table(rename.alter, "renamed", &err));
	txn = BeginWith(db, rename);
	OK(meru_txn_schema(txn, "renamed", &own, &err));
	meru_table_schema_free(own);
	EXPECT_ABOUT(MeruStatus_ErrNotFound, "simple", meru_txn_schema(txn, "simple", &own, &err));
	OK(meru_txn_commit(txn, nullptr, &err));
	meru_txn_free(txn);
	MeruHandle *table = nullptr;
	OK(meru_open_table(db, "renamed", &table, &err));
	CHECK(RowText(table, 3) == "3,three,3,33", "under its new name: %s", RowText(table, 3).c_str());
	meru_free(table);
	OK(meru_close_free(db, &err));
}

void InTransactionRefused() {
	auto db = OpenSimple("alter-txn-refused");
	auto schema = SchemaOf(db);
	PutSimple(db, 1, "one", 1);
	Change drop, other, none;
	OK(meru_alter_drop_column(drop.alter, "d", 0, &err));
	OK(meru_alter_drop_column(other.alter, "s", 0, &err));
	OK(meru_alter_drop_column(none.alter, "nothing", 0, &err));

	// of two that alter the table, the later one fails
	auto first = BeginWith(db, drop), second = BeginWith(db, other);
	OK(meru_txn_commit(first, nullptr, &err));
	EXPECT_ABOUT(MeruStatus_ErrConflict, "simple", meru_txn_commit(second, nullptr, &err));
	CHECK(RowText(db, 1) == "1,one", "%s", RowText(db, 1).c_str());
	meru_txn_free(first);
	meru_txn_free(second);
	Release(schema);

	// a statement that was begun with the old columns
	schema = SchemaOf(db);
	MeruTxn *txn = nullptr;
	OK(meru_txn_begin(db, &txn, &err));
	MeruWrite *write = nullptr;
	OK(meru_txn_write(txn, nullptr, &write, &err));
	OK(meru_txn_alter_table(txn, "SIMPLE", other.alter, &err));
	EXPECT(MeruStatus_ErrConflict, meru_write_commit(write, nullptr, &err));
	meru_write_free(write);
	CHECK(Columns(db, txn) == 1, "the transaction goes on");

	auto arg = MeruStatus_ErrInvalidArg;
	EXPECT_ABOUT(MeruStatus_ErrNotFound, "nothing", meru_txn_alter_table(txn, nullptr, none.alter, &err));
	EXPECT_ABOUT(MeruStatus_ErrNotFound, "\"gone\"", meru_txn_alter_table(txn, "gone", drop.alter, &err));
	EXPECT_ABOUT(arg, "alter", meru_txn_alter_table(txn, nullptr, nullptr, &err));
	EXPECT_ABOUT(arg, "txn", meru_txn_alter_table(nullptr, nullptr, drop.alter, &err));
	meru_txn_rollback(txn);
	EXPECT(MeruStatus_ErrClosed, meru_txn_alter_table(txn, nullptr, other.alter, &err));
	meru_txn_free(txn);
	CHECK(RowText(db, 1) == "1,one", "%s", RowText(db, 1).c_str());
	Release(schema);
	OK(meru_close_free(db, &err));
}

} // namespace

void AlterCases() {
	check_run("alter", Changes);
	check_run("alter mistakes", Mistakes);
	check_run("alter in a transaction", InTransaction);
	check_run("alter in a transaction, refused", InTransactionRefused);
}
