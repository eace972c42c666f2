#include "catalog/table_definition.hpp"

#include "duckdb/common/exception.hpp"
#include "duckdb/common/exception/binder_exception.hpp"
#include "duckdb/common/string_util.hpp"
#include "duckdb/parser/constraints/check_constraint.hpp"
#include "duckdb/parser/constraints/not_null_constraint.hpp"
#include "duckdb/parser/constraints/unique_constraint.hpp"
#include "duckdb/parser/expression/columnref_expression.hpp"
#include "duckdb/parser/expression/constant_expression.hpp"
#include "duckdb/parser/parsed_data/create_table_info.hpp"
#include "duckdb/parser/parser.hpp"

namespace duckdb {

namespace {

//! An expression as text that can be parsed again; empty where it cannot.
string ExpressionText(const ParsedExpression &expression) {
	auto text = expression.ToString();
	auto valid = text.find('\0') == string::npos && Parser::ParseExpressionList(text).size() == 1;
	return valid ? text : string();
}

void SetKey(MeruTable &table, const CreateTableInfo &info, const UniqueConstraint &constraint) {
	if (!constraint.IsPrimaryKey()) {
		throw BinderException("Table \"%s\": UNIQUE constraints are not supported in merutable tables, PRIMARY KEY is",
							  table.name);
	}
	if (constraint.HasIndex()) {
		table.key.push_back(constraint.GetIndex().index);
		return;
	}
	for (auto &name : constraint.GetColumnNames()) {
		table.key.push_back(info.columns.GetColumn(name).Logical().index);
	}
}

void AddCheck(MeruTable &table, const CheckConstraint &constraint) {
	table.checks.push_back(
		TableDefinition::StoredText("Table \"" + table.name + "\": the CHECK constraint", *constraint.expression));
}

void ApplyConstraint(MeruTable &table, const CreateTableInfo &info, const Constraint &constraint) {
	auto refuse = [&](const char *kind) {
		throw BinderException("Table \"%s\": %s constraints are not supported in merutable tables", table.name, kind);
	};
	switch (constraint.type) {
	case ConstraintType::NOT_NULL:
		table.columns[constraint.Cast<NotNullConstraint>().index.index].nullable = false;
		return;
	case ConstraintType::UNIQUE:
		SetKey(table, info, constraint.Cast<UniqueConstraint>());
		return;
	case ConstraintType::CHECK:
		AddCheck(table, constraint.Cast<CheckConstraint>());
		return;
	case ConstraintType::FOREIGN_KEY:
		refuse("FOREIGN KEY");
		return;
	default:
		refuse("such");
	}
}

MeruTable MakeColumns(const CreateTableInfo &info) {
	MeruTable result;
	result.name = info.table;
	if (!info.partition_keys.empty() || !info.sort_keys.empty()) {
		throw BinderException("Table \"%s\": PARTITIONED BY and SORTED BY are not supported for merutable tables",
							  info.table);
	}
	for (auto &definition : info.columns.Logical()) {
		result.columns.push_back(TableDefinition::MakeColumn(definition));
	}
	return result;
}

//! The columns of the key are never NULL, and of types that have an order of their own.
void RequireKey(MeruTable &table) {
	for (auto index : table.key) {
		auto &column = table.columns[index];
		if (column.type.IsNested()) {
			throw InvalidTypeException(column.type, "primary key column \"" + column.name +
														"\": nested types cannot be part of a key");
		}
		column.nullable = false;
	}
}

//! "a, b" as places of columns.
vector<idx_t> ParseKey(const CreateTableInfo &info, const ParsedExpression &option) {
	string text;
	if (option.GetExpressionClass() == ExpressionClass::CONSTANT) {
		text = option.Cast<ConstantExpression>().value.ToString();
	} else {
		text = option.ToString();
	}
	vector<idx_t> result;
	for (auto &expression : Parser::ParseExpressionList(text)) {
		if (expression->GetExpressionClass() != ExpressionClass::COLUMN_REF) {
			throw BinderException("Option \"%s\" takes a list of columns: \"%s\" is none", TableDefinition::KEY_OPTION,
								  text);
		}
		auto &name = expression->Cast<ColumnRefExpression>().GetColumnName();
		if (!info.columns.ColumnExists(name)) {
			throw BinderException("Option \"%s\": table \"%s\" has no column \"%s\"", TableDefinition::KEY_OPTION,
								  info.table, name);
		}
		result.push_back(info.columns.GetColumn(name).Logical().index);
	}
	return result;
}

} // namespace

MeruColumn TableDefinition::MakeColumn(const ColumnDefinition &definition) {
	auto &name = definition.Name();
	if (definition.Generated()) {
		throw BinderException("Column \"%s\": generated columns are not supported in merutable tables", name);
	}
	if (definition.CompressionType() != CompressionType::COMPRESSION_AUTO) {
		throw BinderException("Column \"%s\": USING COMPRESSION is not supported in merutable tables", name);
	}
	if (definition.Type().id() == LogicalTypeId::VARCHAR && !StringType::GetCollation(definition.Type()).empty()) {
		throw BinderException("Column \"%s\": COLLATE is not supported in merutable tables", name);
	}
	MeruColumn result;
	result.name = name;
	result.type = definition.Type();
	if (definition.HasDefaultValue()) {
		result.default_sql = StoredText("Column \"" + name + "\": the DEFAULT", definition.DefaultValue());
	}
	return result;
}

string TableDefinition::StoredText(const string &what, const ParsedExpression &expression) {
	auto text = ExpressionText(expression);
	if (text.empty()) {
		throw BinderException("%s %s cannot be stored", what, expression.ToString());
	}
	return text;
}

MeruTable TableDefinition::Make(const CreateTableInfo &info) {
	for (auto &option : info.options) {
		throw BinderException("Option \"%s\" is not supported for merutable tables", option.first);
	}
	auto result = MakeColumns(info);
	for (auto &constraint : info.constraints) {
		ApplyConstraint(result, info, *constraint);
	}
	if (result.key.empty()) {
		throw BinderException(
			"Table \"%s\" needs a PRIMARY KEY, as in CREATE TABLE t(id BIGINT PRIMARY KEY, …): merutable "
			"tables are kept by their key",
			result.name);
	}
	RequireKey(result);
	return result;
}

MeruTable TableDefinition::MakeAs(const CreateTableInfo &info) {
	auto result = MakeColumns(info);
	for (auto &option : info.options) {
		if (!StringUtil::CIEquals(option.first, KEY_OPTION)) {
			throw BinderException("Option \"%s\" is not supported for merutable tables: \"%s\" is", option.first,
								  KEY_OPTION);
		}
		result.key = ParseKey(info, *option.second);
	}
	if (result.key.empty()) {
		throw BinderException(
			"CREATE TABLE %s AS needs to know the PRIMARY KEY: CREATE TABLE %s WITH (%s = 'column, …') AS "
			"…, or create the table first, then INSERT",
			result.name, result.name, KEY_OPTION);
	}
	RequireKey(result);
	return result;
}

} // namespace duckdb
