#include "copy/copy_target.hpp"

#include "common/snapshot.hpp"
#include "duckdb/common/exception/binder_exception.hpp"
#include "duckdb/common/string_util.hpp"

#include <algorithm>

namespace duckdb {

namespace {

constexpr const char *OPTION_TABLE_NAME = "table_name";
constexpr const char *OPTION_PRIMARY_KEY = "primary_key";
//! Column names of the engine's own.

//! Splits 'a, "b, c"' at its commas. Quotes are as in SQL.
vector<string> ParseColumnList(const string &text) {
	vector<string> result;
	idx_t pos = 0;
	auto skip_spaces = [&]() {
		while (pos < text.size() && StringUtil::CharacterIsSpace(text[pos])) {
			pos++;
		}
	};
	while (true) {
		string name;
		skip_spaces();
		if (pos < text.size() && text[pos] == '"') {
			bool closed = false;
			for (pos++; pos < text.size() && !closed; pos++) {
				if (text[pos] != '"') {
					name += text[pos];
				} else if (pos + 1 < text.size() && text[pos + 1] == '"') {
					name += text[pos++];
				} else {
					closed = true;
				}
			}
			skip_spaces();
			if (!closed || (pos < text.size() && text[pos] != ',')) {
				throw BinderException(
					"COPY option PRIMARY_KEY: a quote is not closed, or not followed by a comma, in: %s", text);
			}
		} else {
			while (pos < text.size() && text[pos] != ',') {
				name += text[pos++];
			}
			StringUtil::RTrim(name);
		}
		if (name.empty()) {
			throw BinderException("COPY option PRIMARY_KEY: a column name is empty in: %s", text);
		}
		result.push_back(std::move(name));
		if (pos >= text.size()) {
			return result;
		}
		pos++;
	}
}

void AddKeyNames(const Value &value, bool is_list, vector<string> &result) {
	if (value.IsNull()) {
		throw BinderException("COPY option PRIMARY_KEY: a column name is NULL");
	}
	if (value.type().id() == LogicalTypeId::LIST) {
		for (auto &child : ListValue::GetChildren(value)) {
			AddKeyNames(child, true, result);
		}
		return;
	}
	if (value.type().id() != LogicalTypeId::VARCHAR) {
		throw BinderException("COPY option PRIMARY_KEY takes column names, not a value of type %s",
							  value.type().ToString());
	}
	if (is_list) {
		result.push_back(StringValue::Get(value));
		return;
	}
	for (auto &name : ParseColumnList(StringValue::Get(value))) {
		result.push_back(name);
	}
}

idx_t FindColumn(const MeruTable &table, const string &name) {
	for (idx_t i = 0; i < table.columns.size(); i++) {
		if (StringUtil::CIEquals(table.columns[i].name, name)) {
			return i;
		}
	}
	throw BinderException("COPY option PRIMARY_KEY: there is no column \"%s\" among %s", name,
						  StringUtil::Join(table.Names(), ", "));
}

vector<idx_t> ParseKey(const MeruTable &table, const vector<Value> &values) {
	vector<string> names;
	for (auto &value : values) {
		AddKeyNames(value, values.size() > 1, names);
	}
	if (names.empty()) {
		throw BinderException("COPY option PRIMARY_KEY names no column");
	}
	vector<idx_t> result;
	for (auto &name : names) {
		auto index = FindColumn(table, name);
		if (std::find(result.begin(), result.end(), index) != result.end()) {
			throw BinderException("COPY option PRIMARY_KEY names column \"%s\" twice", table.columns[index].name);
		}
		result.push_back(index);
	}
	return result;
}

string ParseTableName(const vector<Value> &values) {
	if (values.size() != 1 || values[0].IsNull() || values[0].type().id() != LogicalTypeId::VARCHAR ||
		StringValue::Get(values[0]).empty()) {
		throw BinderException("COPY option TABLE_NAME takes one name");
	}
	return StringValue::Get(values[0]);
}

//! The last part of a path.
string TableNameOf(const string &path) {
	auto end = path.find_last_not_of('/');
	auto trimmed = end == string::npos ? string() : path.substr(0, end + 1);
	auto slash = trimmed.find_last_of('/');
	auto result = slash == string::npos ? trimmed : trimmed.substr(slash + 1);
	if (result.empty() || result == "." || result == "..") {
		throw BinderException("COPY to \"%s\": the path does not end in a name for the table, give TABLE_NAME", path);
	}
	return result;
}

string Describe(const vector<string> &names, const vector<LogicalType> &types) {
	vector<string> parts;
	for (idx_t i = 0; i < names.size(); i++) {
		parts.push_back(names[i] + " " + types[i].ToString());
	}
	return StringUtil::Join(parts, ", ");
}

//! The table at a path that is meant: that of the name, or without one the table in the root, or the only one. NULL
//! where it is to be created.
shared_ptr<MeruDatabase> FindTable(const shared_ptr<MeruDatabase> &database, const string &path, const string &name) {
	if (!name.empty()) {
		return database->OpenTable(name);
	}
	MeruTableListRef tables(*database);
	for (auto &info : tables) {
		if (info.id == 0 || tables.Count() == 1) {
			return database->OpenTable(info.id);
		}
	}
	if (tables.Count() > 0) {
		throw BinderException("COPY to \"%s\": there are several tables, and none in its root: give TABLE_NAME", path);
	}
	return nullptr;
}

void CheckFits(const MeruTable &existing, const MeruTable &given, bool has_key) {
	auto names = given.Names();
	auto types = given.Types();
	auto existing_names = existing.Names();
	auto existing_types = existing.Types();
	bool fits = names.size() == existing_names.size();
	for (idx_t i = 0; fits && i < names.size(); i++) {
		// An ENUM's own name is no part of the type here.
		auto same_type = types[i].id() == LogicalTypeId::ENUM && existing_types[i].id() == LogicalTypeId::ENUM
							 ? types[i].ToString() == existing_types[i].ToString() || types[i] == existing_types[i]
							 : types[i] == existing_types[i];
		fits = same_type && StringUtil::CIEquals(names[i], existing_names[i]);
	}
	if (!fits) {
		throw InvalidInputException("COPY: the columns do not match those of table \"%s\" in names, types and order.\n"
									"The table has: %s\nThe query has: %s",
									existing.name, Describe(existing_names, existing_types), Describe(names, types));
	}
	if (has_key && existing.key != given.key) {
		vector<string> key;
		for (auto index : existing.key) {
			key.push_back(existing.columns[index].name);
		}
		throw InvalidInputException("COPY option PRIMARY_KEY: the key of table \"%s\" is (%s)", existing.name,
									StringUtil::Join(key, ", "));
	}
}

} // namespace

CopyTarget CopyTarget::Bind(ClientContext &context, const string &path,
							const case_insensitive_map_t<vector<Value>> &options, const vector<string> &names,
							const vector<LogicalType> &types) {
	CopyTarget result;
	result.path = ResolveMerutablePath(context, path);
	auto &table = result.table;
	for (idx_t i = 0; i < names.size(); i++) {
		MeruColumn column;
		column.name = names[i];
		column.type = types[i];
		table.columns.push_back(std::move(column));
	}
	bool has_name = false;
	bool has_key = false;
	for (auto &option : options) {
		if (StringUtil::CIEquals(option.first, OPTION_TABLE_NAME)) {
			table.name = ParseTableName(option.second);
			has_name = true;
		} else if (StringUtil::CIEquals(option.first, OPTION_PRIMARY_KEY)) {
			table.key = ParseKey(table, option.second);
			has_key = true;
		} else {
			throw BinderException("COPY (FORMAT merutable) has no option \"%s\": it has TABLE_NAME and PRIMARY_KEY",
								  option.first);
		}
	}
	if (!has_key) {
		table.key.push_back(0);
	}
	auto database = MeruDatabase::OpenReader(context, result.path);
	auto existing = database ? FindTable(database, path, table.name) : nullptr;
	auto snapshot = existing ? MeruSnapshotRef::Acquire(existing) : nullptr;
	if (snapshot) {
		CheckFits(snapshot->Table(), table, has_key);
		result.table = snapshot->Table();
		result.exists = true;
		return result;
	}
	if (!has_name) {
		table.name = TableNameOf(result.path);
	}
	for (auto index : table.key) {
		table.columns[index].nullable = false;
	}
	// Asked now, before there is a directory for the table.
	auto schema = table.ToEngine();
	MeruCall([&](char **err) { return meru_table_schema_validate(schema.Get(), err); });
	return result;
}

} // namespace duckdb
