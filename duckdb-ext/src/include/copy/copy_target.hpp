//! Where COPY … TO 'path' (FORMAT merutable) writes to, and as what.

#pragma once

#include "common/table_schema.hpp"
#include "duckdb/common/types/value.hpp"
#include "duckdb/common/case_insensitive_map.hpp"

namespace duckdb {
class ClientContext;

struct CopyTarget {
	//! Absolute, or relative to the process; as the engine takes it.
	string path;
	//! The table to write: the one that exists, else the one to be created.
	MeruTable table;
	bool exists = false;

	//! Reads the options and what is at the path. Throws where the rows do not fit a table that exists.
	static CopyTarget Bind(ClientContext &context, const string &path,
						   const case_insensitive_map_t<vector<Value>> &options, const vector<string> &names,
						   const vector<LogicalType> &types);
};

} // namespace duckdb
