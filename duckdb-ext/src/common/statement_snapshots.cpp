#include "common/statement_snapshots.hpp"

#include "duckdb/common/exception/catalog_exception.hpp"
#include "duckdb/main/client_context.hpp"

namespace duckdb {

shared_ptr<MeruSnapshotLease> StatementSnapshots::Get(ClientContext &context, const string &path) {
	auto resolved = ResolveMerutablePath(context, path);
	auto state = context.registered_state->GetOrCreate<StatementSnapshots>("merutable_statement_snapshots");
	lock_guard<mutex> guard(state->lock);
	auto entry = state->leases.find(resolved);
	if (entry != state->leases.end()) {
		return entry->second;
	}
	auto database = MeruDatabase::OpenReader(context, resolved);
	auto snapshot = database ? MeruSnapshotRef::Acquire(std::move(database)) : nullptr;
	if (!snapshot) {
		throw CatalogException("There is no merutable table in \"%s\"", path);
	}
	auto lease = make_shared_ptr<MeruSnapshotLease>(std::move(snapshot));
	state->leases[resolved] = lease;
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
