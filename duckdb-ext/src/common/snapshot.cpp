#include "common/snapshot.hpp"

#include "duckdb/common/exception.hpp"

namespace duckdb {

shared_ptr<MeruSnapshotRef> MeruSnapshotRef::Acquire(shared_ptr<MeruDatabase> database) {
	MeruSnapshot *snapshot = nullptr;
	if (!MeruCallIfFound([&](char **err) { return meru_snapshot_acquire(database->Get(), &snapshot, err); })) {
		return nullptr;
	}
	return make_shared_ptr<MeruSnapshotRef>(std::move(database), snapshot);
}

shared_ptr<MeruSnapshotRef> MeruSnapshotRef::Acquire(const MeruTxnRef &txn, const string &table) {
	MeruSnapshot *snapshot = nullptr;
	if (!MeruCallIfFound([&](char **err) { return meru_txn_snapshot(txn.Get(), table.c_str(), &snapshot, err); })) {
		return nullptr;
	}
	return make_shared_ptr<MeruSnapshotRef>(txn.SharedDatabase(), snapshot);
}

MeruSnapshotRef::MeruSnapshotRef(shared_ptr<MeruDatabase> database_p, MeruSnapshot *snapshot_p)
	: database(std::move(database_p)), snapshot(snapshot_p) {
	try {
		MeruCall([&](char **err) { return meru_snapshot_info(snapshot, &info, err); });
		MeruTableSchema *engine_schema = nullptr;
		MeruCall([&](char **err) { return meru_snapshot_schema(snapshot, &engine_schema, err); });
		schema = make_uniq<MeruSchemaHandle>(engine_schema);
		table = MeruTable::FromEngine(*engine_schema);
	} catch (...) {
		meru_snapshot_release(snapshot);
		throw;
	}
}

MeruSnapshotRef::~MeruSnapshotRef() {
	meru_snapshot_release(snapshot);
}

MeruSnapshotSetRef::MeruSnapshotSetRef(const MeruDatabase &database) {
	MeruCall([&](char **err) { return meru_snapshot_all(database.Get(), &set, err); });
}

MeruSnapshotSetRef::~MeruSnapshotSetRef() {
	meru_snapshot_set_free(set);
}

shared_ptr<MeruSnapshotRef> MeruSnapshotSetRef::Of(uint64_t id, shared_ptr<MeruDatabase> database) const {
	MeruSnapshot *snapshot = nullptr;
	if (!MeruCallIfFound([&](char **err) { return meru_snapshot_of(set, id, &snapshot, err); })) {
		return nullptr;
	}
	return make_shared_ptr<MeruSnapshotRef>(std::move(database), snapshot);
}

shared_ptr<MeruSnapshotRef> MeruSnapshotLease::Get() const {
	lock_guard<mutex> guard(lock);
	if (!snapshot) {
		throw InvalidInputException("The snapshot that this statement was bound to is gone: bind it anew");
	}
	return snapshot;
}

shared_ptr<MeruSnapshotLease> MeruSnapshotLease::Sublet(shared_ptr<MeruSnapshotRef> part) {
	auto result = make_shared_ptr<MeruSnapshotLease>(std::move(part));
	lock_guard<mutex> guard(lock);
	if (!snapshot) {
		result->End();
	}
	parts.push_back(weak_ptr<MeruSnapshotLease>(result));
	return result;
}

void MeruSnapshotLease::End() {
	shared_ptr<MeruSnapshotRef> released;
	vector<weak_ptr<MeruSnapshotLease>> ending;
	{
		lock_guard<mutex> guard(lock);
		std::swap(released, snapshot);
		std::swap(ending, parts);
	}
	for (auto &part : ending) {
		if (auto lease = part.lock()) {
			lease->End();
		}
	}
}

} // namespace duckdb
