#include "common/statement_snapshots.hpp"

#include "duckdb/common/exception/catalog_exception.hpp"
#include "duckdb/main/client_context.hpp"

namespace duckdb {

shared_ptr<MeruSnapshotLease> StatementSnapshots::Get(ClientContext &context, const string &path) {
	return Get(context, path, nullptr);
}

shared_ptr<MeruSnapshotLease> StatementSnapshots::Get(ClientContext &context, const string &path,
													  optional_ptr<const MeruTableVersion> version) {
	auto resolved = ResolveMerutablePath(context, path);
	auto key = version ? resolved + "\n" + version->Key() : resolved;
	auto state = context.registered_state->GetOrCreate<StatementSnapshots>("merutable_statement_snapshots");
	lock_guard<mutex> guard(state->lock);
	auto entry = state->leases.find(key);
	if (entry != state->leases.end()) {
		return entry->second;
	}
	auto database = MeruDatabase::OpenReader(context, resolved);
	shared_ptr<MeruSnapshotRef> snapshot;
	if (database) {
		snapshot = version ? version->Acquire(std::move(database)) : MeruSnapshotRef::Acquire(std::move(database));
	}
	if (!snapshot) {
		throw CatalogException("There is no merutable table in \"%s\"", path);
	}
	auto lease = make_shared_ptr<MeruSnapshotLease>(std::move(snapshot));
	state->leases[key] = lease;
	return lease;
}

void StatementSnapshots::QueryEnd() {
	unordered_map<string, shared_ptr<MeruSnapshotLease>> ended;
	{
		lock_guard<mutex> guard(lock);
		std::swap(ended, leases);
	}
	for (auto &entry : ended) {
		entry.second->End();
	}
}

void StatementSnapshots::TransactionCommit(MetaTransaction &, ClientContext &) {
	QueryEnd();
}

void StatementSnapshots::TransactionRollback(MetaTransaction &, ClientContext &) {
	QueryEnd();
}

} // namespace duckdb
