//! Parts of a snapshot, by what filters say of the key.

#pragma once

#include "common/snapshot.hpp"
#include "scan/key_bounds.hpp"

namespace duckdb {

struct SnapshotPart {
	//! The rows within bounds. Null where a bound is no value of a key, being too long for one, say: a filter may have
	//! it. leave_files: the part keeps its files, however few rows of them are meant.
	static shared_ptr<MeruSnapshotRef> Make(ClientContext &context, const MeruSnapshotRef &snapshot,
											const KeyBounds &bounds, bool leave_files);
	//! Whether a file, by its place in the snapshot, may hold rows within a range.
	static bool FileMeets(ClientContext &context, const MeruSnapshotRef &snapshot, idx_t file, const KeyBounds &bounds);
};

} // namespace duckdb
