//! DuckDB's types and the engine's.

#pragma once

#include "duckdb/common/types.hpp"
#include "merutable.h"

namespace duckdb {

//! A type as the engine takes it, with what it points at. Neither copied nor moved.
class MeruTypeInfo {
  public:
	MeruTypeInfo() {
		memset(&info, 0, sizeof(info));
	}
	MeruTypeInfo(const MeruTypeInfo &) = delete;
	MeruTypeInfo &operator=(const MeruTypeInfo &) = delete;

	//! Sets type and what belongs to it in info; the rest is the caller's to set. Throws for a type that cannot be
	//! stored: it is named as that of a column.
	void Set(const string &column, const LogicalType &type);

	MeruColumnInfo info;

  private:
	void SetLabels(const string &column, const LogicalType &type);
	void SetFields(const string &column, const LogicalType &type);
	void AddField(const string &column, const string &name, const LogicalType &type);

	string name;
	vector<string> texts;
	vector<const char *> labels;
	vector<unique_ptr<MeruTypeInfo>> parts;
	vector<MeruColumnInfo> fields;
};

struct MeruTypeMapping {
	static LogicalType FromEngine(const MeruColumnInfo &info);
};

} // namespace duckdb
