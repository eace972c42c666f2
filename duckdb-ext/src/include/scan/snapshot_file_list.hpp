//! The files of a snapshot, as DuckDB's multi-file scan wants them. Rows that are only in memory are one more entry.

#pragma once

#include "common/snapshot.hpp"
#include "duckdb/common/multi_file/multi_file_list.hpp"
#include "duckdb/common/mutex.hpp"
#include "scan/key_bounds.hpp"
#include "scan/scan_counters.hpp"

namespace duckdb {
class FilePruner;
class TableCatalogEntry;

class SnapshotFileList : public MultiFileList {
  public:
	//! table: the entry of an attached database that is being scanned, if one is.
	SnapshotFileList(shared_ptr<MeruSnapshotLease> lease, shared_ptr<TableCatalogEntry> table);
	//! Another view of what whole shows: lease is that of a part, or whole's own.
	SnapshotFileList(const SnapshotFileList &whole, shared_ptr<MeruSnapshotLease> lease, KeyBounds bounds);

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
	//! Whether the engine reads all rows, because they are few.
	bool IsLookedUp() const {
		return looked_up;
	}
	//! How many files there are without filters.
	idx_t WholeFileCount() const {
		return whole_file_count;
	}
	//! How many of them filters left.
	idx_t FileCount() const {
		return file_count;
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
	const shared_ptr<ScanCounters> &Counters() const {
		return counters;
	}
	//! Files are read in descending order of their keys.
	void ReadBackwards() {
		backwards = true;
	}

	//! Whether an entry stands for the rows in memory.
	static bool IsOverlay(const OpenFileInfo &file);
	//! The file's place in the snapshot of the list's lease.
	static idx_t SnapshotIndex(const OpenFileInfo &file);
	//! In bytes.
	static idx_t Size(const OpenFileInfo &file);
	//! Hidden ones included.
	static idx_t Rows(const OpenFileInfo &file);
	//! The sequence number of all its rows, where they have one.
	static optional_idx CommonSeq(const OpenFileInfo &file);
	//! The file's place in the whole snapshot; behind all files for the rows in memory.
	static idx_t Place(const OpenFileInfo &file);

	vector<OpenFileInfo> GetAllFiles() const override;
	vector<OpenFileInfo> GetDisplayFileList(optional_idx max_files) const override;
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
	void ReadInfo();
	//! The view that bounds leave, or null if they leave all.
	unique_ptr<SnapshotFileList> Narrow(ClientContext &context, KeyBounds bounds,
										const vector<column_t> &column_ids) const;
	//! Under lock: fills candidates when first asked for, as what filters leave out need not be looked at.
	void ListCandidates() const;
	//! Under lock: hands the next candidate out that may hold something. False at the end.
	bool Advance() const;

	shared_ptr<MeruSnapshotLease> lease;
	shared_ptr<MeruSnapshotLease> whole_lease;
	shared_ptr<TableCatalogEntry> table;
	//! By which the lease's part was made.
	KeyBounds bounds;
	//! If there are filters by which it may leave files out.
	shared_ptr<FilePruner> pruner;
	shared_ptr<ScanCounters> counters;
	bool backwards = false;

	mutable mutex lock;
	mutable bool listed = false;
	mutable vector<OpenFileInfo> candidates;
	//! Of the candidates that are files, which are the last ones.
	mutable vector<idx_t> indices;
	mutable idx_t next_candidate = 0;
	//! Those handed out.
	mutable vector<OpenFileInfo> files;

	idx_t whole_file_count;
	idx_t file_count;
	idx_t live_rows;
	idx_t memory_rows;
	bool looked_up;
	int64_t version;
};

} // namespace duckdb
