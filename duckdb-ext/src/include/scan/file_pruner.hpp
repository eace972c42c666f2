//! Which files of a snapshot can hold no row that passes the filters of a running scan.

#pragma once

#include "common/snapshot.hpp"
#include "duckdb/planner/table_filter.hpp"
#include "scan/key_bounds.hpp"

namespace duckdb {

//! Asked of one file after the other while the scan runs, since filters of joins and of top-N get their values, and
//! better ones, meanwhile. Not for several threads at a time.
class FilePruner {
  public:
	FilePruner(ClientContext &context, shared_ptr<MeruSnapshotRef> snapshot);

	//! A filter on a column of the table. It is copied; what changes in it is shared.
	void Add(idx_t column, const TableFilter &filter);
	//! Whether asking may leave files out.
	bool IsUseful() const {
		return !values.empty() || key_changes;
	}
	//! Whether the file files[at] of the snapshot may have rows that pass. files is the same in every call.
	bool MayPass(const vector<idx_t> &files, idx_t at);

  private:
	//! A filter on a column whose values files have bounds of.
	struct ValueFilter {
		idx_t column;
		unique_ptr<TableFilter> filter;
		//! The answers for files from first on.
		idx_t first;
		vector<MeruColumnStats> stats;
	};

	KeyBounds Bounds() const;
	bool MeetsKeys(idx_t file) const;
	bool MayPass(ValueFilter &value, const vector<idx_t> &files, idx_t at) const;

	ClientContext &context;
	shared_ptr<MeruSnapshotRef> snapshot;
	//! By column of the table.
	vector<pair<idx_t, unique_ptr<TableFilter>>> keys;
	bool key_changes = false;
	vector<ValueFilter> values;
};

} // namespace duckdb
