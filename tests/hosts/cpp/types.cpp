// Every type: in and out as values and as Arrow, in memory, in files and after reopening.
#include <climits>

#include "kit.hpp"

namespace {

using namespace std::string_literals;

const std::vector<Col> all_types = {
	{"k", MeruColumnType_Int32, false},
	{"bool", MeruColumnType_Boolean},
	{"i8", MeruColumnType_Int8},
	{"i16", MeruColumnType_Int16},
	{"i32", MeruColumnType_Int32},
	{"i64", MeruColumnType_Int64},
	{"i128", MeruColumnType_Int128},
	{"u8", MeruColumnType_UInt8},
	{"u16", MeruColumnType_UInt16},
	{"u32", MeruColumnType_UInt32},
	{"u64", MeruColumnType_UInt64},
	{"u128", MeruColumnType_UInt128},
	{"f", MeruColumnType_Float},
	{"d", MeruColumnType_Double},
	{"dec4", MeruColumnType_Decimal, true, 9, 2},
	{"dec8", MeruColumnType_Decimal, true, 18, 0},
	{"dec16", MeruColumnType_Decimal, true, 38, 10},
	{"blob", MeruColumnType_ByteArray},
	{"fixed", MeruColumnType_FixedLenBytes, true, 0, 0, 3},
	{"text", MeruColumnType_Utf8},
	{"date", MeruColumnType_Date},
	{"time", MeruColumnType_Time},
	{"ts_s", MeruColumnType_TimestampS},
	{"ts_ms", MeruColumnType_TimestampMs},
	{"ts_us", MeruColumnType_TimestampUs},
	{"ts_ns", MeruColumnType_TimestampNs},
	{"ts_tz", MeruColumnType_TimestampTz},
	{"interval", MeruColumnType_Interval},
	{"uuid", MeruColumnType_Uuid},
	{"bit", MeruColumnType_Bit},
	{"enum", MeruColumnType_Enum, true, 0, 0, 0, {"p", "q", "it's"}},
};

// The Arrow format of each.
const char *const formats[] = {"i",    "b",    "c",    "s",     "i",       "l",       "w:16", "C",   "S", "I",   "L",
							   "w:16", "f",    "g",    "d:9,2", "d:18,0",  "d:38,10", "z",    "w:3", "u", "tdD", "ttu",
							   "tss:", "tsm:", "tsu:", "tsn:",  "tsu:UTC", "w:16",    "w:16", "z",   "u"};

MeruValue FloatOf(float f) {
	auto v = Value(MeruColumnType_Float);
	v.inner.v_float = f;
	return v;
}
MeruValue IntervalOf(int32_t months, int32_t days, int64_t micros) {
	auto v = Value(MeruColumnType_Interval);
	v.inner.v_interval = {months, days, micros};
	return v;
}
MeruValue UuidOf(uint8_t first, uint8_t last) {
	auto v = Value(MeruColumnType_Uuid);
	for (int i = 0; i < 16; i++) {
		v.inner.v_uuid[i] = uint8_t(i * 16 + i);
	}
	v.inner.v_uuid[0] = first;
	v.inner.v_uuid[15] = last;
	return v;
}
MeruValue BoolOf(bool b) {
	auto v = Value(MeruColumnType_Boolean);
	v.inner.v_bool = b;
	return v;
}

// 10^38 - 1, the greatest DECIMAL(38).
const uint64_t dec_hi = 5421010862427522170ULL, dec_lo = 687399551400673279ULL;
const std::string fixed_low = "\0\0\0"s, fixed_high = "\xff\xfe\xfd", bits_low = "\0"s, bits_high = "\x03\xf5"s,
				  blob_high = "a\0\xff"s, text_high = "na\xc3\xafve \xe2\x9c\x93";

using Row = std::vector<MeruValue>;

Row LowRow() {
	return {I32(1),
			BoolOf(false),
			I32(-128, MeruColumnType_Int8),
			I32(-32768, MeruColumnType_Int16),
			I32(INT32_MIN),
			I64(INT64_MIN),
			I128(1ULL << 63, 0),
			U64(0, MeruColumnType_UInt8),
			U64(0, MeruColumnType_UInt16),
			U64(0, MeruColumnType_UInt32),
			U64(0),
			I128(0, 0, MeruColumnType_UInt128),
			FloatOf(-INFINITY),
			Dbl(-1.7976931348623157e308),
			I128(UINT64_MAX, uint64_t(-999999999), MeruColumnType_Decimal),
			I128(UINT64_MAX, uint64_t(-999999999999999999), MeruColumnType_Decimal),
			I128(~dec_hi, ~dec_lo + 1, MeruColumnType_Decimal),
			Text("", MeruColumnType_ByteArray),
			Bytes(fixed_low, MeruColumnType_FixedLenBytes),
			Text(""),
			I32(-100000, MeruColumnType_Date),
			I64(0, MeruColumnType_Time),
			I64(-62135596800, MeruColumnType_TimestampS),
			I64(-1, MeruColumnType_TimestampMs),
			I64(-INT64_MAX, MeruColumnType_TimestampUs),
			I64(-876544211, MeruColumnType_TimestampNs),
			I64(-1, MeruColumnType_TimestampTz),
			IntervalOf(INT32_MIN, -3, INT64_MIN),
			UuidOf(0, 0),
			Bytes(bits_low, MeruColumnType_Bit),
			U64(0, MeruColumnType_Enum)};
}

Row HighRow() {
	return {I32(2),
			BoolOf(true),
			I32(127, MeruColumnType_Int8),
			I32(32767, MeruColumnType_Int16),
			I32(INT32_MAX),
			I64(INT64_MAX),
			I128(INT64_MAX, UINT64_MAX),
			U64(255, MeruColumnType_UInt8),
			U64(65535, MeruColumnType_UInt16),
			U64(UINT32_MAX, MeruColumnType_UInt32),
			U64(UINT64_MAX),
			I128(UINT64_MAX, UINT64_MAX, MeruColumnType_UInt128),
			FloatOf(3.4e38f),
			Dbl(NAN),
			I128(0, 999999999, MeruColumnType_Decimal),
			I128(0, 999999999999999999, MeruColumnType_Decimal),
			I128(dec_hi, dec_lo, MeruColumnType_Decimal),
			Bytes(blob_high, MeruColumnType_ByteArray),
			Bytes(fixed_high, MeruColumnType_FixedLenBytes),
			Bytes(text_high),
			I32(100000, MeruColumnType_Date),
			I64(86400000000, MeruColumnType_Time),
			I64(253402300799, MeruColumnType_TimestampS),
			I64(INT64_MAX, MeruColumnType_TimestampMs),
			I64(INT64_MAX, MeruColumnType_TimestampUs),
			I64(INT64_MAX, MeruColumnType_TimestampNs),
			I64(1700000000123456, MeruColumnType_TimestampTz),
			IntervalOf(13, 31, 86399999999),
			UuidOf(0xff, 0xff),
			Bytes(bits_high, MeruColumnType_Bit),
			U64(2, MeruColumnType_Enum)};
}

Row NullRow() {
	Row r(all_types.size(), Null());
	r[0] = I32(3);
	return r;
}

MeruHandle *OpenTypes(const char *name) {
	auto db = Open(In(name));
	auto schema = BuildSchema("types", all_types, {0});
	OK(meru_create_table(db, schema, &err));
	meru_table_schema_free(schema);
	return db;
}

void PutRows(MeruHandle *db, std::vector<Row> rows) {
	std::vector<MeruRow> c;
	for (auto &r : rows) {
		c.push_back({r.data(), r.size()});
	}
	OK(meru_put_batch(db, c.data(), c.size(), nullptr, &err));
}

void CheckGet(MeruHandle *db, const Row &want, const char *where) {
	MeruValue key = want[0];
	int found = 0;
	MeruRow *row = nullptr;
	OK(meru_get(db, &key, 1, &found, &row, &err));
	CHECK(found && row && row->field_count == want.size(), "row %d %s", key.inner.v_int32, where);
	for (size_t i = 0; found && i < want.size(); i++) {
		auto w = want[i];
		w.tag = all_types[i].type;
		CHECK(SameValue(row->fields[i], w), "column %s of row %d %s", all_types[i].name, key.inner.v_int32, where);
	}
	meru_row_free(row);
}

void CheckAll(MeruHandle *db, const char *where) {
	for (auto &r : {LowRow(), HighRow(), NullRow()}) {
		CheckGet(db, r, where);
	}
}

void Values() {
	auto db = OpenTypes("types");
	PutRows(db, {LowRow(), HighRow(), NullRow()});
	CheckAll(db, "in memory");
	OK(meru_flush(db, &err));
	CheckAll(db, "flushed");
	OK(meru_close_free(db, &err));
	OK(meru_open_existing(In("types").c_str(), 1, nullptr, &db, &err));
	CheckAll(db, "reopened");
	meru_free(db);
}

void SchemaSurvives() {
	MeruHandle *db = nullptr;
	OK(meru_open_existing(In("types").c_str(), 1, nullptr, &db, &err));
	MeruTableSchema *schema = nullptr;
	OK(meru_table_schema_get(db, &schema, &err));
	meru_free(db);
	CHECK(meru_table_schema_column_count(schema) == all_types.size(), "columns");
	for (size_t i = 0; i < all_types.size(); i++) {
		MeruColumnInfo info{};
		OK(meru_table_schema_column(schema, i, &info, &err));
		auto &c = all_types[i];
		CHECK(info.name && std::string(info.name) == c.name && info.type == c.type && bool(info.nullable) == c.nullable,
			  "column %s", c.name);
		CHECK(info.precision == c.precision && info.scale == c.scale && info.fixed_byte_len == c.width, "column %s",
			  c.name);
		CHECK(info.label_count == c.labels.size(), "column %s: %zu labels", c.name, size_t(info.label_count));
		for (size_t l = 0; l < c.labels.size() && l < info.label_count; l++) {
			CHECK(!strcmp(info.labels[l], c.labels[l]), "label %s", info.labels[l]);
		}
		CHECK(info.field_id == int(i) + 1, "field id %d", info.field_id);
	}
	ArrowSchema arrow{};
	OK(meru_arrow_schema(schema, &arrow, &err));
	meru_table_schema_free(schema);
	CHECK(std::string(arrow.format) == "+s" && arrow.n_children == int64_t(all_types.size()), "arrow schema");
	for (int64_t i = 0; i < arrow.n_children; i++) {
		auto c = arrow.children[i];
		CHECK(std::string(c->format) == formats[i], "column %s: %s", all_types[size_t(i)].name, c->format);
		CHECK(std::string(c->name) == all_types[size_t(i)].name && c->metadata, "name %s", c->name);
		CHECK(((c->flags & 2) != 0) == all_types[size_t(i)].nullable, "nullable flag of %s", c->name);
	}
	Release(arrow);
}

// The rows as Arrow arrays by hand, in the forms that merutable.h promises.
Node HandMade() {
	const std::vector<bool> v = {true, true, false};
	auto be = [](unsigned __int128 x) {
		std::string s(16, 0);
		for (int i = 15; i >= 0; i--, x >>= 8) {
			s[size_t(i)] = char(x);
		}
		return s;
	};
	auto fixed16 = [&](std::string a, std::string b) {
		struct W {
			char c[16];
		};
		std::vector<W> w(3, W{});
		memcpy(w[0].c, a.data(), 16);
		memcpy(w[1].c, b.data(), 16);
		return Fixed(w, v);
	};
	auto interval = [&](int32_t m, int32_t d, int64_t u) {
		return be((unsigned __int128)(uint32_t(m) ^ 0x80000000u) << 96 |
				  (unsigned __int128)(uint32_t(d) ^ 0x80000000u) << 64 | (uint64_t(u) ^ (1ULL << 63)));
	};
	auto dec = [&](__int128 a, __int128 b) {
		return Fixed(std::vector<__int128>{a, b, 0}, v);
	};
	const __int128 dec38 = (__int128)dec_hi << 64 | dec_lo;
	struct W3 {
		char c[3];
	};
	auto low = LowRow(), high = HighRow();
	auto uuid = [](const MeruValue &x) {
		return std::string(reinterpret_cast<const char *>(x.inner.v_uuid), 16);
	};
	return Struct({Fixed<int32_t>({1, 2, 3}),
				   Bools({false, true, false}, v),
				   Fixed<int8_t>({-128, 127, 0}, v),
				   Fixed<int16_t>({-32768, 32767, 0}, v),
				   Fixed<int32_t>({INT32_MIN, INT32_MAX, 0}, v),
				   Fixed<int64_t>({INT64_MIN, INT64_MAX, 0}, v),
				   fixed16(be(0), be(~(unsigned __int128)0)),
				   Fixed<uint8_t>({0, 255, 0}, v),
				   Fixed<uint16_t>({0, 65535, 0}, v),
				   Fixed<uint32_t>({0, UINT32_MAX, 0}, v),
				   Fixed<uint64_t>({0, UINT64_MAX, 0}, v),
				   fixed16(be(0), be(~(unsigned __int128)0)),
				   Fixed<float>({-INFINITY, 3.4e38f, 0}, v),
				   Fixed<double>({-1.7976931348623157e308, NAN, 0}, v),
				   dec(-999999999, 999999999),
				   dec(-999999999999999999, 999999999999999999),
				   dec(-dec38, dec38),
				   Strings<int32_t>({"", blob_high, ""}, v),
				   Fixed<W3>({{{0, 0, 0}}, {{'\xff', '\xfe', '\xfd'}}, {{0, 0, 0}}}, v),
				   Strings<int32_t>({"", text_high, ""}, v),
				   Fixed<int32_t>({-100000, 100000, 0}, v),
				   Fixed<int64_t>({0, 86400000000, 0}, v),
				   Fixed<int64_t>({-62135596800, 253402300799, 0}, v),
				   Fixed<int64_t>({-1, INT64_MAX, 0}, v),
				   Fixed<int64_t>({-INT64_MAX, INT64_MAX, 0}, v),
				   Fixed<int64_t>({-876544211, INT64_MAX, 0}, v),
				   Fixed<int64_t>({-1, 1700000000123456, 0}, v),
				   fixed16(interval(INT32_MIN, -3, INT64_MIN), interval(13, 31, 86399999999)),
				   fixed16(uuid(low[28]), uuid(high[28])),
				   Strings<int32_t>({bits_low, bits_high, ""}, v),
				   Strings<int32_t>({"p", "it's", ""}, v)},
				  3);
}

void ArrowIn() {
	auto db = OpenTypes("types-arrow");
	auto schema = SchemaOf(db);
	ArrowArray rows{};
	Export(HandMade(), &rows);
	uint64_t seq = 0;
	OK(meru_put_arrow(db, &rows, &schema, &seq, &err));
	CHECK(seq == 3 && !rows.release && schema.release, "sequence number %llu", (unsigned long long)seq);
	CheckAll(db, "by Arrow, in memory");
	OK(meru_flush(db, &err));
	CheckAll(db, "by Arrow, flushed");
	Release(schema);
	OK(meru_close_free(db, &err));
}

// What a scan yields goes into another database and comes out the same.
void ArrowOutAndIn() {
	MeruHandle *from = nullptr;
	OK(meru_open_existing(In("types").c_str(), 1, nullptr, &from, &err));
	auto to = OpenTypes("types-copy");
	MeruSnapshot *snap = nullptr;
	OK(meru_snapshot_acquire(from, &snap, &err));
	ArrowArrayStream stream{};
	OK(meru_scan_arrow(snap, nullptr, nullptr, 0, &stream, &err));
	meru_snapshot_release(snap);
	meru_free(from);
	ArrowSchema schema{};
	ArrowArray rows{};
	CHECK(stream.get_schema(&stream, &schema) == 0, "get_schema");
	CHECK(stream.get_next(&stream, &rows) == 0 && rows.length == 3, "get_next");
	// the hand-made arrays are what the library makes
	ArrowArray hand{};
	Export(HandMade(), &hand);
	for (int64_t c = 0; c < rows.n_children; c++) {
		auto &mine = *hand.children[c], &theirs = *rows.children[c];
		for (int64_t i = 0; i < 3; i++) {
			bool valid = IsValid(theirs, i);
			CHECK(valid == IsValid(mine, i), "validity of %s", schema.children[c]->name);
			if (!valid) {
				continue;
			}
			std::string f = schema.children[c]->format;
			bool same = f == "b"               ? BoolAt(mine, i) == BoolAt(theirs, i)
						: f == "u" || f == "z" ? StringAt(mine, i) == StringAt(theirs, i)
						: f[0] == 'w' || f[0] == 'd'
							? BytesAt(mine, i, f == "w:3" ? 3 : 16) == BytesAt(theirs, i, f == "w:3" ? 3 : 16)
							: true;
			CHECK(same, "column %s, row %d", schema.children[c]->name, int(i));
		}
	}
	Release(hand);
	OK(meru_put_arrow(to, &rows, &schema, nullptr, &err));
	CHECK(!rows.release && schema.release, "ownership");
	CheckAll(to, "copied by Arrow");
	Release(schema);
	Release(stream);
	OK(meru_close_free(to, &err));
}

void Allowances() {
	auto db = OpenTypes("types-allow");
	auto row = HighRow();
	auto put = [&](size_t column, MeruValue v, char **err) {
		auto r = row;
		r[column] = v;
		MeruRow c = {r.data(), r.size()};
		return meru_put(db, &c, nullptr, err);
	};
	// any integer column takes Int32 and Int64 that fit
	for (size_t c : {2, 3, 4, 5, 6, 7, 8, 9, 10, 11}) {
		OK(put(c, I32(100), &err));
		OK(put(c, I64(100), &err));
		auto want = row;
		want[c] = c == 6 || c == 11 ? I128(0, 100) : c >= 7 ? U64(100) : c == 5 ? I64(100) : I32(100);
		CheckGet(db, want, "widened");
	}
	OK(put(6, I64(-5), &err));
	auto want = row;
	want[6] = I128(UINT64_MAX, uint64_t(-5));
	CheckGet(db, want, "sign-extended");
	for (size_t c : {7, 8, 9, 10, 11}) {
		EXPECT_ABOUT(MeruStatus_ErrInvalidArg, all_types[c].name, put(c, I64(-1), &err));
	}
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "i8", put(2, I64(128), &err));
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "i16", put(3, I32(40000), &err));
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "i32", put(4, I64(1LL << 40), &err));
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "u8", put(7, U64(256, MeruColumnType_UInt8), &err));
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "i8", put(2, I32(200, MeruColumnType_Int8), &err));
	OK(put(19, Text("bytes", MeruColumnType_ByteArray), &err));
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "text", put(19, Text("\xff\xfe", MeruColumnType_ByteArray), &err));
	OK(put(17, Text("text as bytes", MeruColumnType_Utf8), &err));
	OK(put(30, Text("q"), &err));
	want = row;
	want[30] = U64(1);
	CheckGet(db, want, "by its label");
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "enum", put(30, Text("nope"), &err));
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "enum", put(30, U64(3, MeruColumnType_Enum), &err));
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "dec4", put(14, I128(0, 1000000000, MeruColumnType_Decimal), &err));
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "dec8", put(15, I128(1, 5, MeruColumnType_Decimal), &err));
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "dec16", put(16, I128(dec_hi, dec_lo + 1, MeruColumnType_Decimal), &err));
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "fixed", put(18, Text("ab", MeruColumnType_FixedLenBytes), &err));
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "time", put(21, I64(86400000001, MeruColumnType_Time), &err));
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "bit", put(29, Text("\x09z", MeruColumnType_Bit), &err));
	EXPECT_ABOUT(MeruStatus_ErrSchemaMismatch, "\"d\"", put(13, I64(1), &err));
	EXPECT_ABOUT(MeruStatus_ErrSchemaMismatch, "date", put(20, I32(1), &err));
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "\"k\"", put(0, Null(), &err));
	MeruValue wild = Value(MeruColumnType_Utf8);
	wild.inner.v_bytes = {nullptr, 5};
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "text", put(19, wild, &err));
	wild.inner.v_bytes = {reinterpret_cast<const uint8_t *>("x"), UINTPTR_MAX};
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "text", put(19, wild, &err));
	CHECK(CountRows(db) == 1, "one key");
	OK(meru_close_free(db, &err));
}

// Every type as the first part of a key: order, lookup, deletion.
void Keys() {
	auto low = LowRow(), high = HighRow();
	for (size_t c = 1; c < all_types.size(); c++) {
		auto name = "key-" + std::string(all_types[c].name);
		auto db = Open(In(name));
		auto type = all_types[c];
		auto schema = BuildSchema("keys", {{"v", MeruColumnType_Int32}, type, {"k2", MeruColumnType_Utf8}}, {1, 2});
		OK(meru_create_table(db, schema, &err));
		meru_table_schema_free(schema);
		MeruValue rows[3][3] = {{I32(0), low[c], Text("b")}, {I32(1), high[c], Text("a")}, {I32(2), low[c], Text("a")}};
		for (auto &r : rows) {
			MeruRow row = {r, 3};
			OK(meru_put(db, &row, nullptr, &err));
		}
		for (int pass = 0; pass < 2; pass++) {
			MeruScanResult *all = nullptr;
			OK(meru_scan(db, nullptr, 0, nullptr, 0, &all, &err));
			CHECK(all && all->count == 3, "key %s", type.name);
			for (size_t i = 0; all && i < all->count; i++) {
				const int order[3] = {2, 0, 1};
				CHECK(all->entries[i].fields[0].inner.v_int32 == order[i], "order by %s: %d at %zu", type.name,
					  all->entries[i].fields[0].inner.v_int32, i);
			}
			meru_scan_result_free(all);
			MeruValue key[2] = {high[c], Text("a")};
			int found = 0;
			MeruRow *row = nullptr;
			OK(meru_get(db, key, 2, &found, &row, &err));
			CHECK(found && row->fields[0].inner.v_int32 == 1, "lookup by %s", type.name);
			meru_row_free(row);
			OK(meru_flush(db, &err));
		}
		MeruValue key[2] = {low[c], Text("b")};
		OK(meru_delete(db, key, 2, nullptr, &err));
		CHECK(CountRows(db) == 2, "deletion by %s", type.name);
		OK(meru_close_free(db, &err));
	}
}

// What is too large is refused when it is written, by name; what is large passes through log and file.
void Limits() {
	auto db = Open(In("limits"));
	auto schema = BuildSchema("limits", {{"k", MeruColumnType_Utf8}, {"b", MeruColumnType_ByteArray}}, {0});
	OK(meru_create_table(db, schema, &err));
	meru_table_schema_free(schema);
	auto put = [&](const std::string &k, const std::string &b, char **err) {
		MeruValue f[2] = {Bytes(k), Bytes(b, MeruColumnType_ByteArray)};
		MeruRow row = {f, 2};
		return meru_put(db, &row, nullptr, err);
	};
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "65536", put(std::string(70000, 'k'), "", &err));
	std::string big(size_t(256) << 20, 'b'), key(60000, 'k');
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "\"b\"", put("k", big, &err));
	big.resize(30 << 20);
	big[12345] = 0;
	OK(put(key, big, &err));
	OK(put("zeros\0inside"s, "x", &err));
	for (int pass = 0; pass < 2; pass++) {
		MeruValue k = Bytes(key);
		int found = 0;
		MeruRow *row = nullptr;
		OK(meru_get(db, &k, 1, &found, &row, &err));
		CHECK(found && SameValue(row->fields[0], k) && SameValue(row->fields[1], Bytes(big, MeruColumnType_ByteArray)),
			  "the large row, pass %d", pass);
		meru_row_free(row);
		auto zeros = "zeros\0inside"s;
		k = Bytes(zeros);
		OK(meru_get(db, &k, 1, &found, &row, &err));
		CHECK(found && SameValue(row->fields[0], k), "a key with a zero byte");
		meru_row_free(row);
		OK(meru_flush(db, &err));
	}
	OK(meru_close_free(db, &err));
	// many columns, and one too many
	std::vector<Col> columns;
	std::vector<std::string> names;
	for (int i = 0; i < 4097; i++) {
		names.push_back("c" + std::to_string(i));
	}
	for (auto &n : names) {
		columns.push_back({n.c_str(), MeruColumnType_Int32});
	}
	db = Open(In("wide"));
	schema = BuildSchema("wide", columns, {4095});
	EXPECT_ABOUT(MeruStatus_ErrInvalidArg, "4096", meru_create_table(db, schema, &err));
	meru_table_schema_free(schema);
	columns.pop_back();
	schema = BuildSchema("wide", columns, {4095});
	OK(meru_create_table(db, schema, &err));
	meru_table_schema_free(schema);
	std::vector<MeruValue> f;
	for (int i = 0; i < 4096; i++) {
		f.push_back(i % 2 ? I32(i) : Null());
	}
	MeruRow row = {f.data(), f.size()}, *got = nullptr;
	OK(meru_put(db, &row, nullptr, &err));
	OK(meru_flush(db, &err));
	int found = 0;
	OK(meru_get(db, &f[4095], 1, &found, &got, &err));
	CHECK(found && got->field_count == 4096 && got->fields[4094].is_null && got->fields[4093].inner.v_int32 == 4093,
		  "the wide row");
	meru_row_free(got);
	OK(meru_close_free(db, &err));
}

} // namespace

void TypeCases() {
	check_run("values of every type, in three places", Values);
	check_run("schema of every type, after reopening", SchemaSurvives);
	check_run("Arrow arrays by hand, of every type", ArrowIn);
	check_run("a scan's batches written again", ArrowOutAndIn);
	check_run("values of other types, and bad ones", Allowances);
	check_run("keys of every type", Keys);
	check_run("limits", Limits);
}
