//! What a scan did.

#pragma once

#include "duckdb/common/atomic.hpp"
#include "duckdb/common/common.hpp"

namespace duckdb {

//! What a scan did, for EXPLAIN ANALYZE.
struct ScanCounters {
	atomic<idx_t> files_read{0};
	//! Found to hold nothing that passes while the scan ran.
	atomic<idx_t> files_skipped{0};
	//! Size of the files read.
	atomic<idx_t> bytes{0};
	atomic<idx_t> memory_rows{0};
	atomic<idx_t> row_groups_read{0};
	//! Handed out to be read; statistics may have shown that nothing in them passes.
	atomic<idx_t> row_groups{0};
};

} // namespace duckdb
