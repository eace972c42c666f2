//! What a snapshot's metadata tells DuckDB's optimiser.

#pragma once

#include "duckdb/function/partition_stats.hpp"
#include "duckdb/storage/statistics/base_statistics.hpp"
#include "scan/snapshot_file_list.hpp"

namespace duckdb {

struct ScanStatistics {
	//! What the engine says of values of a type, in DuckDB's form.
	static BaseStatistics From(const MeruColumnStats &stats, const LogicalType &type);
	//! Of a column of the table. The optimiser drops filters by them: what they say is true of every row.
	static unique_ptr<BaseStatistics> OfColumn(const SnapshotFileList &files, idx_t column);
	//! The whole table as one partition: its exact number of rows, and min and max where they are exact. Empty where
	//! filters left something out.
	static vector<PartitionStatistics> Partitions(const SnapshotFileList &files);
};

} // namespace duckdb
