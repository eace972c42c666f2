#include "common/table_schema.hpp"

#include "common/meru_status.hpp"
#include "common/type_mapping.hpp"
#include "duckdb/common/exception.hpp"
#include "duckdb/common/exception/binder_exception.hpp"

#include <algorithm>

namespace duckdb {

namespace {

vector<MeruField> FieldsOf(const MeruColumnInfo &info) {
	vector<MeruField> result;
	for (idx_t i = 0; i < info.field_count; i++) {
		auto &part = info.fields[i];
		MeruField field;
		field.name = part.name;
		field.type = MeruTypeMapping::FromEngine(part);
		field.field_id = part.field_id;
		field.fields = FieldsOf(part);
		result.push_back(std::move(field));
	}
	return result;
}

//! The number for the table itself.
constexpr idx_t TABLE_COMMENT = UINTPTR_MAX;

string CommentOf(const MeruTableSchema &schema, idx_t column) {
	auto comment = meru_table_schema_comment(&schema, column);
	return comment ? comment : "";
}

void SetComment(const MeruSchemaHandle &schema, idx_t column, const string &comment) {
	if (!comment.empty()) {
		MeruCall([&](char **err) { return meru_table_schema_set_comment(schema.Get(), column, comment.c_str(), err); });
	}
}

} // namespace

MeruTable MeruTable::FromEngine(const MeruTableSchema &schema) {
	MeruTable result;
	result.name = meru_table_schema_name(&schema);
	result.comment = CommentOf(schema, TABLE_COMMENT);
	auto count = meru_table_schema_column_count(&schema);
	result.columns.reserve(count);
	for (idx_t i = 0; i < count; i++) {
		MeruColumnInfo info;
		memset(&info, 0, sizeof(info));
		MeruCall([&](char **err) { return meru_table_schema_column(&schema, i, &info, err); });
		MeruColumn column;
		column.name = info.name;
		column.type = MeruTypeMapping::FromEngine(info);
		column.nullable = info.nullable != 0;
		column.default_sql = info.default_sql ? info.default_sql : "";
		column.comment = CommentOf(schema, i);
		column.field_id = info.field_id;
		column.fields = FieldsOf(info);
		column.fixed_length = info.type == MeruColumnType_FixedLenBytes ? info.fixed_byte_len : 0;
		result.columns.push_back(std::move(column));
	}
	auto key_count = meru_table_schema_key_count(&schema);
	for (idx_t i = 0; i < key_count; i++) {
		result.key.push_back(meru_table_schema_key_column(&schema, i));
	}
	auto check_count = meru_table_schema_check_count(&schema);
	for (idx_t i = 0; i < check_count; i++) {
		result.checks.emplace_back(meru_table_schema_check(&schema, i));
	}
	return result;
}

MeruSchemaHandle MeruTable::ToEngine() const {
	MeruSchemaHandle result(meru_table_schema_new(name.c_str()));
	for (auto &column : columns) {
		if (column.name.find('\0') != string::npos) {
			throw InvalidInputException("Column names with a zero byte are not supported");
		}
		MeruTypeInfo type;
		type.Set(column.name, column.type);
		auto &info = type.info;
		info.name = column.name.c_str();
		info.nullable = column.nullable ? 1 : 0;
		info.default_sql = column.default_sql.empty() ? nullptr : column.default_sql.c_str();
		MeruCall([&](char **err) { return meru_table_schema_add_column(result.Get(), &info, err); });
	}
	SetComment(result, TABLE_COMMENT, comment);
	for (idx_t i = 0; i < columns.size(); i++) {
		SetComment(result, i, columns[i].comment);
	}
	for (auto index : key) {
		MeruCall([&](char **err) { return meru_table_schema_add_key(result.Get(), index, err); });
	}
	for (auto &check : checks) {
		MeruCall([&](char **err) { return meru_table_schema_add_check(result.Get(), check.c_str(), err); });
	}
	return result;
}

bool MeruTable::Equals(const MeruTable &other) const {
	if (name != other.name || comment != other.comment || key != other.key || checks != other.checks ||
		columns.size() != other.columns.size()) {
		return false;
	}
	for (idx_t i = 0; i < columns.size(); i++) {
		auto &a = columns[i];
		auto &b = other.columns[i];
		if (a.name != b.name || a.type != b.type || a.nullable != b.nullable || a.default_sql != b.default_sql ||
			a.comment != b.comment || a.field_id != b.field_id || a.fields != b.fields ||
			a.fixed_length != b.fixed_length) {
			return false;
		}
	}
	return true;
}

bool MeruTable::IsKey(idx_t column) const {
	return std::find(key.begin(), key.end(), column) != key.end();
}

vector<string> MeruTable::Names() const {
	vector<string> result;
	for (auto &column : columns) {
		result.push_back(column.name);
	}
	return result;
}

vector<LogicalType> MeruTable::Types() const {
	vector<LogicalType> result;
	for (auto &column : columns) {
		result.push_back(column.type);
	}
	return result;
}

vector<LogicalType> MeruTable::KeyTypes() const {
	vector<LogicalType> result;
	for (auto index : key) {
		result.push_back(columns[index].type);
	}
	return result;
}

} // namespace duckdb
