//! DuckDB's types and the engine's.

#pragma once

#include "duckdb/common/types.hpp"
#include "merutable.h"

namespace duckdb {

struct MeruTypeMapping {
	//! Fills type, precision, scale and, for an ENUM, labels of info. The labels are pointers into label_storage, which
	//! must live as long as info is used. Returns false for types that cannot be stored.
	static bool ToEngine(const LogicalType &type, MeruColumnInfo &info, vector<string> &label_storage,
						 vector<const char *> &labels);
	static LogicalType FromEngine(const MeruColumnInfo &info);

	//! The type in which Arrow data of the engine carries a type's values: the type itself, BLOB where the values come
	//! in file form, VARCHAR for an ENUM.
	static LogicalType ArrowType(const LogicalType &type);
};

} // namespace duckdb
