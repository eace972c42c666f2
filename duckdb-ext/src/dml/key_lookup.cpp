#include "dml/key_lookup.hpp"

#include "duckdb/common/arrow/arrow.hpp"
#include "duckdb/main/client_context.hpp"

namespace duckdb {

KeyLookup::KeyLookup(ClientContext &context, shared_ptr<MeruSnapshotRef> snapshot_p)
	: snapshot(std::move(snapshot_p)), buffer(context, snapshot->Table(), snapshot->Table().key) {
	one.Initialize(context, snapshot->Table().KeyTypes());
}

bool KeyLookup::Contains(DataChunk &keys, idx_t row) {
	SelectionVector place(1);
	place.set_index(0, row);
	one.Reset();
	one.Slice(keys, place, 1);
	int found = 0;
	auto look = [&](ArrowArray &key, const ArrowSchema &schema) {
		ArrowArray found_row;
		memset(&found_row, 0, sizeof(found_row));
		MeruCall(
			[&](char **err) { return meru_snapshot_get(snapshot->Get(), &key, &schema, &found, &found_row, err); });
		if (found_row.release) {
			found_row.release(&found_row);
		}
	};
	buffer.Append(one, look);
	buffer.Flush(look);
	return found != 0;
}

} // namespace duckdb
