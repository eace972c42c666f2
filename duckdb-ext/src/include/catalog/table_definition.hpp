//! CREATE TABLE, as the engine wants it.

#pragma once

#include "common/table_schema.hpp"

namespace duckdb {
struct CreateTableInfo;

struct TableDefinition {
	//! The table that a statement describes. Refuses by name what cannot be: no primary key, constraints of other
	//! kinds, generated columns, collations.
	static MeruTable Make(const CreateTableInfo &info);

	//! For CREATE TABLE … AS, which has no place for PRIMARY KEY: the option that names it.
	static constexpr const char *KEY_OPTION = "primary_key";
	static MeruTable MakeAs(const CreateTableInfo &info);
};

} // namespace duckdb
