//! The files of a snapshot, as DuckDB's multi-file scan wants them. Rows that are only in memory are one more entry.

#pragma once

#include "common/snapshot.hpp"
#include "duckdb/common/multi_file/multi_file_list.hpp"
#include "duckdb/common/mutex.hpp"

namespace duckdb {
class TableCatalogEntry;

class SnapshotFileList : public MultiFileList {
  public:
	//! table: the entry of an attached database that is being scanned, if one is. whole: the list of which this one is
	//! a part.
	SnapshotFileList(shared_ptr<MeruSnapshotLease> lease, shared_ptr<TableCatalogEntry> table,
					 optional_ptr<const SnapshotFileList> whole = nullptr);

	const MeruSnapshotLease &Lease() const {
		return *lease;
	}
	//! The lease on the whole snapshot.
	const MeruSnapshotLease &WholeLease() const {
		return *whole_lease;
	}
	//! Whether filters left files or rows out.
	bool IsNarrowed() const {
		return lease != whole_lease;
	}
	//! How many files there are without filters.
	idx_t WholeFileCount() const {
		return whole_file_count;
	}
	optional_ptr<TableCatalogEntry> Table() const {
		return table.get();
	}
	//! Exact where there is nothing in memory, else not less than there are.
	idx_t LiveRows() const {
		return live_rows;
	}
	//! Rows and deletions in memory; not less than there are.
	idx_t MemoryRows() const {
		return memory_rows;
	}
	int64_t Version() const {
		return version;
	}

	//! Whether an entry stands for the rows in memory.
	static bool IsOverlay(const OpenFileInfo &file);
	//! The file's place in the snapshot.
	static idx_t SnapshotIndex(const OpenFileInfo &file);
	static bool HasDeletes(const OpenFileInfo &file);

	vector<OpenFileInfo> GetAllFiles() const override;
	FileExpandResult GetExpandResult() const override;
	idx_t GetTotalFileCount() const override;
	unique_ptr<NodeStatistics> GetCardinality(ClientContext &context) const override;
	unique_ptr<MultiFileList> Copy() const override;
	unique_ptr<MultiFileList> ComplexFilterPushdown(ClientContext &context, const MultiFileOptions &options,
													MultiFilePushdownInfo &info,
													vector<unique_ptr<Expression>> &filters) const override;
	unique_ptr<MultiFileList> DynamicFilterPushdown(ClientContext &context, const MultiFileOptions &options,
													const vector<string> &names, const vector<LogicalType> &types,
													const vector<column_t> &column_ids,
													TableFilterSet &filters) const override;

  protected:
	OpenFileInfo GetFile(idx_t i) const override;

  private:
	shared_ptr<MeruSnapshotLease> lease;
	shared_ptr<MeruSnapshotLease> whole_lease;
	idx_t whole_file_count;
	shared_ptr<TableCatalogEntry> table;
	//! Filled when it is asked for: what filters leave out need not be looked at.
	const vector<OpenFileInfo> &Expand() const;

	mutable mutex expand_lock;
	mutable bool expanded = false;
	mutable vector<OpenFileInfo> files;
	idx_t live_rows;
	idx_t memory_rows;
	int64_t version;
};

} // namespace duckdb
