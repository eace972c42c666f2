// Columns of nested types: how they are described, and rows of them as Arrow.
#include "kit.hpp"

namespace {

MeruColumnInfo Column(const char *name, MeruColumnType type, MeruColumnInfo *fields = nullptr, uintptr_t count = 0) {
	MeruColumnInfo info{};
	info.name = name;
	info.type = type;
	info.nullable = 1;
	info.fields = fields;
	info.field_count = count;
	return info;
}

struct Types {
	MeruColumnInfo element = Column("ignored", MeruColumnType_Uuid);
	MeruColumnInfo pair[2] = {Column(nullptr, MeruColumnType_Utf8), Column(nullptr, MeruColumnType_Int32)};
	MeruColumnInfo parts[3] = {Column("A b", MeruColumnType_List, &element, 1),
							   Column("m", MeruColumnType_Map, pair, 2), Column("j", MeruColumnType_Json)};
	MeruColumnInfo number = Column(nullptr, MeruColumnType_Float);
	MeruColumnInfo array = Column("a", MeruColumnType_Array, &number, 1);
	MeruColumnInfo structure = Column("s", MeruColumnType_Struct, parts, 3);
	Types() {
		array.array_length = 3;
	}
};

MeruTableSchema *Schema() {
	Types types;
	auto schema = meru_table_schema_new("t");
	auto id = Column("id", MeruColumnType_Int64);
	OK(meru_table_schema_add_column(schema, &id, &err));
	OK(meru_table_schema_add_column(schema, &types.structure, &err));
	OK(meru_table_schema_add_column(schema, &types.array, &err));
	OK(meru_table_schema_add_key(schema, 0, &err));
	return schema;
}

void CheckSchema(const MeruTableSchema *schema) {
	MeruColumnInfo info{};
	OK(meru_table_schema_column(schema, 1, &info, &err));
	CHECK(info.type == MeruColumnType_Struct && info.field_count == 3, "s: type %d of %zu", info.type,
		  info.field_count);
	auto &list = info.fields[0], &map = info.fields[1];
	CHECK(std::string(list.name) == "A b" && list.type == MeruColumnType_List && list.field_count == 1, "%s",
		  list.name);
	CHECK(std::string(list.fields[0].name) == "element" && list.fields[0].type == MeruColumnType_Uuid, "element");
	CHECK(map.field_count == 2 && std::string(map.fields[0].name) == "key" && !map.fields[0].nullable &&
			  std::string(map.fields[1].name) == "value" && map.fields[1].nullable,
		  "map");
	CHECK(info.fields[2].type == MeruColumnType_Json, "json");
	std::vector<int32_t> ids = {info.field_id,          list.field_id,          list.fields[0].field_id, map.field_id,
								map.fields[0].field_id, map.fields[1].field_id, info.fields[2].field_id};
	OK(meru_table_schema_column(schema, 2, &info, &err));
	CHECK(info.type == MeruColumnType_Array && info.array_length == 3 && info.field_count == 1, "a");
	ids.push_back(info.field_id);
	ids.push_back(info.fields[0].field_id);
	for (size_t i = 0; i < ids.size(); i++) {
		CHECK(ids[i] > 0, "field id %d", ids[i]);
		for (size_t j = 0; j < i; j++) {
			CHECK(ids[i] != ids[j], "field id %d twice", ids[i]);
		}
	}
}

void Describe() {
	auto schema = Schema();
	CheckSchema(schema);
	MeruHandle *db = nullptr;
	OK(meru_open_with(In("nested").c_str(), nullptr, &db, &err));
	OK(meru_create_table(db, schema, &err));
	meru_table_schema_free(schema);
	OK(meru_close_free(db, &err));
	OK(meru_open_existing(In("nested").c_str(), 0, nullptr, &db, &err));
	OK(meru_table_schema_get(db, &schema, &err));
	CheckSchema(schema);
	ArrowSchema arrow{};
	OK(meru_arrow_schema(schema, &arrow, &err));
	CHECK(std::string(arrow.children[1]->format) == "+s" && std::string(arrow.children[2]->format) == "+w:3", "%s %s",
		  arrow.children[1]->format, arrow.children[2]->format);
	CHECK(std::string(arrow.children[1]->children[0]->format) == "+l" &&
			  std::string(arrow.children[1]->children[1]->format) == "+m",
		  "fields");
	arrow.release(&arrow);
	meru_table_schema_free(schema);

	// Rows of values can but have NULL there.
	MeruValue fields[3] = {I64(1), Null(), Null()};
	MeruRow row{fields, 3};
	OK(meru_put(db, &row, nullptr, &err));
	fields[1] = Value(MeruColumnType_Struct);
	EXPECT_ABOUT(MeruStatus_ErrUnsupported, "\"s\"", meru_put(db, &row, nullptr, &err));
	MeruRow *got = nullptr;
	int found = 0;
	MeruValue key = I64(1);
	OK(meru_get(db, &key, 1, &found, &got, &err));
	CHECK(found && got->field_count == 3 && got->fields[1].is_null && got->fields[1].tag == MeruColumnType_Struct,
		  "row");
	meru_row_free(got);
	OK(meru_close_free(db, &err));
}

void Refused() {
	auto schema = meru_table_schema_new("t");
	Types types;
	types.array.array_length = 0;
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "\"a\"", meru_table_schema_add_column(schema, &types.array, &err));
	auto list = Column("l", MeruColumnType_List);
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "\"l\"", meru_table_schema_add_column(schema, &list, &err));
	list.field_count = 1;
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "\"l\"", meru_table_schema_add_column(schema, &list, &err));
	list.fields = &list; // without end
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "deep", meru_table_schema_add_column(schema, &list, &err));
	types.parts[2].name = "a B";
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "twice", meru_table_schema_add_column(schema, &types.structure, &err));
	types.parts[2].name = nullptr;
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "\"s\"", meru_table_schema_add_column(schema, &types.structure, &err));
	CHECK(meru_table_schema_column_count(schema) == 0, "a column was added");
	auto good = Column("l", MeruColumnType_List, &types.number, 1);
	OK(meru_table_schema_add_column(schema, &good, &err));
	OK(meru_table_schema_add_key(schema, 0, &err));
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "\"l\"", meru_table_schema_validate(schema, &err));
	meru_table_schema_free(schema);

	MeruColumnDef def{};
	def.name = "l";
	def.col_type = MeruColumnType_List;
	uintptr_t key = 0;
	MeruOpenOptions options{};
	auto path = In("nested-plain");
	options.catalog_uri = path.c_str();
	options.schema = {"t", &def, 1, &key, 1};
	MeruHandle *db = nullptr;
	EXPECT_ABOUT(MeruStatus_ErrUnsupported, "\"l\"", meru_open(&options, nullptr, &db, &err));
}

} // namespace

void NestedCases() {
	check_run("nested types described", Describe);
	check_run("nested types refused", Refused);
}
