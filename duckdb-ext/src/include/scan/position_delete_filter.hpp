//! Hides the rows of a data file that a snapshot does not show.

#pragma once

#include "common/snapshot.hpp"
#include "duckdb/common/multi_file/multi_file_data.hpp"

namespace duckdb {

//! Works on the sorted list of positions that the snapshot holds; asked by many threads at once. A vector costs a
//! binary search and the deleted rows in it.
class PositionDeleteFilter : public DeleteFilter {
  public:
	//! file: its place in the snapshot.
	PositionDeleteFilter(shared_ptr<MeruSnapshotRef> snapshot, idx_t file);

	//! How many rows of the file are hidden.
	idx_t Count() const {
		return position_count;
	}
	idx_t Filter(row_t start_row_index, idx_t count, SelectionVector &result_sel) override;

  private:
	shared_ptr<MeruSnapshotRef> snapshot;
	const uint32_t *positions = nullptr;
	uintptr_t position_count = 0;
};

} // namespace duckdb
