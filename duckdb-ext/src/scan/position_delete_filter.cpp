#include "scan/position_delete_filter.hpp"

#include "duckdb/common/types/selection_vector.hpp"

#include <algorithm>

namespace duckdb {

PositionDeleteFilter::PositionDeleteFilter(shared_ptr<MeruSnapshotRef> snapshot_p, idx_t file)
	: snapshot(std::move(snapshot_p)) {
	MeruCall(
		[&](char **err) { return meru_snapshot_deletes(snapshot->Get(), file, &positions, &position_count, err); });
}

idx_t PositionDeleteFilter::Filter(row_t start_row_index, idx_t count, SelectionVector &result_sel) {
	auto start = static_cast<uint64_t>(start_row_index);
	auto end = positions + position_count;
	auto deleted = std::lower_bound(positions, end, start);
	if (deleted == end || *deleted >= start + count) {
		// All rows stay: the selection as it is says so.
		return count;
	}
	if (!result_sel.IsSet()) {
		result_sel.Initialize(STANDARD_VECTOR_SIZE);
	}
	idx_t kept = 0;
	idx_t row = 0;
	for (; deleted != end && *deleted < start + count; ++deleted) {
		for (auto next = static_cast<idx_t>(*deleted - start); row < next; row++) {
			result_sel.set_index(kept++, row);
		}
		row++;
	}
	for (; row < count; row++) {
		result_sel.set_index(kept++, row);
	}
	return kept;
}

} // namespace duckdb
