//! CREATE TABLE, as the engine wants it.

#pragma once

#include "common/table_schema.hpp"

namespace duckdb {
class ColumnDefinition;
class ParsedExpression;
struct CreateTableInfo;

struct TableDefinition {
	//! The table that a statement describes. Refuses by name what cannot be: no primary key, constraints of other
	//! kinds, generated columns, collations.
	static MeruTable Make(const CreateTableInfo &info);

	//! For CREATE TABLE … AS, which has no place for PRIMARY KEY: the option that names it.
	static constexpr const char *KEY_OPTION = "primary_key";
	static MeruTable MakeAs(const CreateTableInfo &info);

	//! A column without its place in a table. Refuses by name what cannot be stored.
	static MeruColumn MakeColumn(const ColumnDefinition &definition);
	//! An expression as text that can be parsed again. Where it cannot, the error says what it is of.
	static string StoredText(const string &what, const ParsedExpression &expression);
};

} // namespace duckdb
