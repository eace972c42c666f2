//! What merutable's copies of parquet_scan carry with them.

#pragma once

#include "common/snapshot.hpp"
#include "duckdb/function/table_function.hpp"

namespace duckdb {
class TableCatalogEntry;

struct ScanFunctionInfo : public TableFunctionInfo {
	//! parquet_scan's own, which ours wraps.
	table_function_bind_t parquet_bind = nullptr;
	table_function_get_metrics_t parquet_metrics = nullptr;
	//! For the scan of an attached table: the transaction's snapshot and the table's entry.
	shared_ptr<MeruSnapshotLease> lease;
	shared_ptr<TableCatalogEntry> table;
};

} // namespace duckdb
