//! CHECK constraints, for rows on their way into a table.

#pragma once

#include "common/table_schema.hpp"
#include "duckdb/common/types/data_chunk.hpp"
#include "duckdb/planner/expression.hpp"

namespace duckdb {
class ClientContext;

//! Immutable once made; for any number of threads.
class RowChecks {
  public:
	//! Binds the conditions of a table.
	RowChecks(ClientContext &context, const MeruTable &table);

	//! Throws a ConstraintException where a row violates a constraint. rows: all columns of the table. NULLs where none
	//! may be come first, as in DuckDB.
	void Verify(ClientContext &context, DataChunk &rows) const;

  private:
	struct Check {
		unique_ptr<Expression> condition;
		string text;
	};

	string table_name;
	vector<Check> checks;
	//! The columns that take no NULL, with their names.
	vector<pair<idx_t, string>> not_null;
};

} // namespace duckdb
