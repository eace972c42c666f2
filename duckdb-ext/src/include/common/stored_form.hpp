//! Values of any type, nested ones included, in the forms in which the engine takes and gives them.

#pragma once

#include "duckdb/common/types.hpp"
#include "duckdb/common/types/vector.hpp"
#include "duckdb/planner/expression.hpp"

namespace duckdb {
class ClientContext;

struct StoredForm {
	//! The type in which Arrow data of the engine carries a type's values: BLOB or BIGINT for what has a file form,
	//! VARCHAR for an ENUM and for JSON; else the type itself.
	static LogicalType ArrowType(const LogicalType &type);
	//! The type as which DuckDB's Parquet reader reads the values from data files.
	static LogicalType ParquetType(const LogicalType &type);
	//! The type that DuckDB's Arrow appender is given, so that it makes what the engine takes.
	static LogicalType AppenderType(const LogicalType &type);

	//! Makes result, of the appender's type, the values of input. May reference it.
	static void Encode(ClientContext &context, Vector &input, Vector &result, idx_t count);
	//! Makes result the values that input has in Arrow's or Parquet's type. May reference it.
	static void Decode(Vector &input, Vector &result, idx_t count);

	//! Whether a cast of DuckDB's would not do.
	static bool NeedsDecoder(const LogicalType &from, const LogicalType &to);
	//! An expression that gives values of the type for one that gives them as they are stored.
	static unique_ptr<Expression> MakeDecoder(unique_ptr<Expression> stored, const LogicalType &type);
};

} // namespace duckdb
