//! What merutable's table functions have in common: arguments, and how people are told about them.

#pragma once

#include "duckdb/function/table_function.hpp"

namespace duckdb {
class ExtensionLoader;

//! The first argument: the name of an attached database, or a path. Throws where it is NULL.
string NameOrPath(const TableFunctionBindInput &input, const char *function);

//! What duckdb_functions() says of a function.
struct FunctionText {
	//! Of the arguments; the last ones may be left out in some forms of the function.
	vector<string> parameters;
	string description;
	vector<string> examples;
};

//! Registers a table function, or its forms, with a description.
void RegisterDescribed(ExtensionLoader &loader, TableFunctionSet set, FunctionText text);
void RegisterDescribed(ExtensionLoader &loader, TableFunction function, FunctionText text);

} // namespace duckdb
