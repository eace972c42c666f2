#include "dml/key_lookup.hpp"

#include "duckdb/common/arrow/arrow.hpp"

namespace duckdb {

KeyLookup::KeyLookup(ClientContext &context, shared_ptr<MeruSnapshotRef> snapshot_p)
	: snapshot(std::move(snapshot_p)), buffer(context, snapshot->Table(), snapshot->Table().key) {
}

void KeyLookup::Look(ArrowArray &keys, const ArrowSchema &schema) {
	auto before = found.size();
	found.resize(before + NumericCast<idx_t>(keys.length));
	MeruCall([&](char **err) {
		return meru_snapshot_multi_get(snapshot->Get(), &keys, &schema, found.data() + before, nullptr, err);
	});
}

void KeyLookup::Add(DataChunk &keys) {
	if (keys.size() == 0) {
		return;
	}
	buffer.Append(keys, [&](ArrowArray &array, const ArrowSchema &schema) { Look(array, schema); });
}

vector<uint8_t> KeyLookup::Finish() {
	buffer.Flush([&](ArrowArray &array, const ArrowSchema &schema) { Look(array, schema); });
	auto result = std::move(found);
	found.clear();
	return result;
}

} // namespace duckdb
