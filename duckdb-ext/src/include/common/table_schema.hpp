//! A table's schema, in DuckDB's types.

#pragma once

#include "duckdb/common/types.hpp"
#include "merutable.h"

namespace duckdb {

//! A part of a column of a nested type: a STRUCT's field, the element of a LIST or an ARRAY, a MAP's key and value.
struct MeruField {
	string name;
	LogicalType type;
	int32_t field_id = 0;
	vector<MeruField> fields;

	bool operator==(const MeruField &other) const {
		return name == other.name && type == other.type && field_id == other.field_id && fields == other.fields;
	}
};

struct MeruColumn {
	string name;
	LogicalType type;
	bool nullable = true;
	//! DEFAULT as SQL text; empty: none.
	string default_sql;
	//! COMMENT ON COLUMN; empty: none.
	string comment;
	//! Below: known of tables that exist.
	int32_t field_id = 0;
	//! The bytes of a column that was declared with a fixed length, through the C interface. 0 else.
	int32_t fixed_length = 0;
	vector<MeruField> fields;
};

//! Owner of the engine's object.
class MeruSchemaHandle {
  public:
	explicit MeruSchemaHandle(MeruTableSchema *schema) : schema(schema) {
	}
	~MeruSchemaHandle() {
		meru_table_schema_free(schema);
	}
	MeruSchemaHandle(MeruSchemaHandle &&other) noexcept : schema(other.schema) {
		other.schema = nullptr;
	}
	MeruSchemaHandle(const MeruSchemaHandle &) = delete;
	MeruSchemaHandle &operator=(const MeruSchemaHandle &) = delete;
	MeruTableSchema *Get() const {
		return schema;
	}

  private:
	MeruTableSchema *schema;
};

struct MeruTable {
	string name;
	vector<MeruColumn> columns;
	//! COMMENT ON TABLE; empty: none.
	string comment;
	//! Columns of the primary key, in key order.
	vector<idx_t> key;
	//! The conditions of CHECK constraints as SQL text, in declared order.
	vector<string> checks;

	static MeruTable FromEngine(const MeruTableSchema &schema);
	//! Throws where a column has a type that cannot be stored, naming both.
	MeruSchemaHandle ToEngine() const;

	//! Whether both describe one table in the same state.
	bool Equals(const MeruTable &other) const;
	bool IsKey(idx_t column) const;
	vector<string> Names() const;
	vector<LogicalType> Types() const;
	vector<LogicalType> KeyTypes() const;
};

} // namespace duckdb
