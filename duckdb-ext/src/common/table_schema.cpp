#include "common/table_schema.hpp"

#include "common/meru_status.hpp"
#include "common/type_mapping.hpp"
#include "duckdb/common/exception.hpp"
#include "duckdb/common/exception/binder_exception.hpp"

#include <algorithm>

namespace duckdb {

MeruTable MeruTable::FromEngine(const MeruTableSchema &schema) {
	MeruTable result;
	result.name = meru_table_schema_name(&schema);
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
		column.field_id = info.field_id;
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
	vector<string> label_storage;
	vector<const char *> labels;
	for (auto &column : columns) {
		if (column.name.find('\0') != string::npos) {
			throw InvalidInputException("Column names with a zero byte are not supported");
		}
		MeruColumnInfo info;
		memset(&info, 0, sizeof(info));
		info.name = column.name.c_str();
		if (!MeruTypeMapping::ToEngine(column.type, info, label_storage, labels)) {
			throw NotImplementedException("Column \"%s\": type %s is not supported in merutable tables", column.name,
										  column.type.ToString());
		}
		for (auto &label : label_storage) {
			if (label.find('\0') != string::npos) {
				throw InvalidInputException("Column \"%s\": ENUM labels with a zero byte are not supported",
											column.name);
			}
		}
		info.nullable = column.nullable ? 1 : 0;
		info.default_sql = column.default_sql.empty() ? nullptr : column.default_sql.c_str();
		MeruCall([&](char **err) { return meru_table_schema_add_column(result.Get(), &info, err); });
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
	if (name != other.name || key != other.key || checks != other.checks || columns.size() != other.columns.size()) {
		return false;
	}
	for (idx_t i = 0; i < columns.size(); i++) {
		auto &a = columns[i];
		auto &b = other.columns[i];
		if (a.name != b.name || a.type != b.type || a.nullable != b.nullable || a.default_sql != b.default_sql ||
			a.field_id != b.field_id || a.fixed_length != b.fixed_length) {
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
