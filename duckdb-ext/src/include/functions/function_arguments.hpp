//! Arguments that merutable's table functions have in common.

#pragma once

#include "duckdb/common/exception/binder_exception.hpp"
#include "duckdb/function/table_function.hpp"

namespace duckdb {

//! The first argument: the name of an attached database, or a path. Throws where it is NULL.
inline string NameOrPath(const TableFunctionBindInput &input, const char *function) {
	if (input.inputs[0].IsNull()) {
		throw BinderException("%s: the name or path is NULL", function);
	}
	return StringValue::Get(input.inputs[0]);
}

} // namespace duckdb
