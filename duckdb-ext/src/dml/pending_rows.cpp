#include "dml/pending_rows.hpp"

#include "duckdb/main/client_context.hpp"

#include <numeric>

namespace duckdb {

PendingRows::PendingRows(ClientContext &context, const MeruTable &table, shared_ptr<MeruSnapshotRef> snapshot)
	: table(table), snapshot(std::move(snapshot)), removed(context, table.KeyTypes()),
	  removed_keys(context, table.KeyTypes()), rows(context, table.Types()) {
}

idx_t PendingRows::Remove(DataChunk &keys, SelectionVector &first) {
	lock_guard<mutex> guard(lock);
	auto count = removed.Add(keys, first);
	if (count == keys.size()) {
		removed_keys.Append(keys);
	} else if (count > 0) {
		DataChunk some;
		some.InitializeEmpty(keys.GetTypes());
		some.Slice(keys, first, count);
		removed_keys.Append(some);
	}
	return count;
}

void PendingRows::Put(DataChunk &new_rows) {
	lock_guard<mutex> guard(lock);
	rows.Append(new_rows);
}

void PendingRows::Finish(ClientContext &context, MeruWriteBatch &write) {
	lock_guard<mutex> guard(lock);
	auto interrupted = [&]() {
		if (context.interrupted) {
			throw InterruptException();
		}
	};
	if (removed_keys.Count() + rows.Count() == 0) {
		return;
	}
	ArrowRowBuffer keys(context, table, table.key);
	auto remove = [&](ArrowArray &array, const ArrowSchema &schema) {
		write.Delete(array, schema);
	};
	for (auto &chunk : removed_keys.Chunks()) {
		interrupted();
		keys.Append(chunk, remove);
	}
	keys.Flush(remove);

	NewKeys new_keys(context, table, snapshot);
	new_keys.removed = removed;
	for (auto &chunk : rows.Chunks()) {
		interrupted();
		new_keys.Add(chunk);
	}
	new_keys.Finish();

	vector<idx_t> all_columns(table.columns.size());
	std::iota(all_columns.begin(), all_columns.end(), 0);
	ArrowRowBuffer buffer(context, table, all_columns);
	auto put = [&](ArrowArray &array, const ArrowSchema &schema) {
		write.Put(array, schema);
	};
	for (auto &chunk : rows.Chunks()) {
		interrupted();
		buffer.Append(chunk, put);
	}
	buffer.Flush(put);
}

} // namespace duckdb
