//! The table function merutable_scan, and the same scan for attached tables.

#pragma once

#include "common/snapshot.hpp"
#include "duckdb/function/table_function.hpp"

namespace duckdb {
class ExtensionLoader;
class TableCatalogEntry;

struct MerutableScan {
	static constexpr const char *NAME = "merutable_scan";

	//! Needs the Parquet extension, whose parquet_scan it wraps.
	static void Register(ExtensionLoader &loader);

	//! The scan of an attached table, bound.
	static TableFunction Bind(ClientContext &context, shared_ptr<MeruSnapshotLease> lease,
							  shared_ptr<TableCatalogEntry> table, unique_ptr<FunctionData> &bind_data);
};

} // namespace duckdb
