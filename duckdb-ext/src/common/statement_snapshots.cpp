#include "common/statement_snapshots.hpp"

#include "catalog/merutable_transaction.hpp"
#include "duckdb/common/exception/binder_exception.hpp"
#include "duckdb/common/exception/catalog_exception.hpp"
#include "duckdb/common/string_util.hpp"
#include "duckdb/main/client_context.hpp"

namespace duckdb {

namespace {

constexpr const char *TABLE_PARAMETERS[] = {"table_name", "table"};

} // namespace

const MeruTableInfo &StatementSnapshots::FindTable(const MeruTableListRef &tables, const string &path,
												   const string &name) {
	for (auto &info : tables) {
		if (name.empty() ? info.id == 0 || tables.Count() == 1 : StringUtil::CIEquals(info.name, name)) {
			return info;
		}
	}
	if (tables.Count() == 0) {
		throw CatalogException("There is no merutable table in \"%s\"", path);
	}
	vector<string> names;
	for (auto &info : tables) {
		names.push_back(string("\"") + info.name + "\"");
	}
	auto list = StringUtil::Join(names, ", ");
	if (name.empty()) {
		throw CatalogException("There are several tables in \"%s\", and none in its root: give table_name, one of %s",
							   path, list);
	}
	throw CatalogException("There is no table \"%s\" in \"%s\": it has %s", name, path, list);
}

namespace {

//! The same in what a transaction sees; an empty name where that does not say.
string TableOf(const MerutableTables &tables, const string &name) {
	for (auto &table : tables.by_name) {
		if (name.empty() && (table.second.id == 0 || tables.by_name.size() == 1)) {
			return table.first;
		}
	}
	return name;
}

} // namespace

shared_ptr<MeruSnapshotLease> StatementSnapshots::Get(ClientContext &context, const string &path, const string &table) {
	return Get(context, path, table, nullptr);
}

shared_ptr<MeruSnapshotLease> StatementSnapshots::Get(ClientContext &context, const string &path, const string &table,
													  optional_ptr<const MeruTableVersion> version) {
	auto resolved = ResolveMerutablePath(context, path);
	auto state = context.registered_state->GetOrCreate<StatementSnapshots>("merutable_statement_snapshots");
	lock_guard<mutex> guard(state->lock);
	auto opened = state->Open(context, resolved);
	if (!opened) {
		if (IsObjectStoreUrl(resolved)) {
			throw IOException("There is no merutable table at \"%s\"", path);
		}
		throw CatalogException("There is no merutable table in \"%s\"", path);
	}
	if (!version) {
		// A transaction of several statements sees its own rows by whatever name.
		auto transaction = MerutableTransaction::Find(context, opened->database->Path());
		auto lease = transaction ? transaction->TryLease(TableOf(*transaction->Tables(), table)) : nullptr;
		if (lease) {
			return lease;
		}
	}
	MeruTableListRef tables(*opened->database);
	auto &info = FindTable(tables, path, table);
	auto key = resolved + "\n" + std::to_string(info.id) + (version ? "\n" + version->Key() : "");
	auto entry = state->leases.find(key);
	if (entry != state->leases.end()) {
		return entry->second;
	}
	auto database = info.id == 0 ? opened->database : opened->database->OpenTable(info.id);
	shared_ptr<MeruSnapshotRef> snapshot;
	if (database) {
		snapshot =
			version ? version->Acquire(std::move(database)) : opened->snapshots->Of(info.id, std::move(database));
	}
	if (!snapshot) {
		throw CatalogException("Table \"%s\" in \"%s\" changed while the statement was planned", info.name, path);
	}
	auto lease = make_shared_ptr<MeruSnapshotLease>(std::move(snapshot));
	state->leases[key] = lease;
	return lease;
}

optional_ptr<StatementSnapshots::Database> StatementSnapshots::Open(ClientContext &context, const string &resolved) {
	auto found = databases.find(resolved);
	if (found != databases.end()) {
		return &found->second;
	}
	Database opened;
	opened.database = MeruDatabase::OpenReader(context, resolved);
	if (!opened.database) {
		return nullptr;
	}
	opened.snapshots = make_uniq<MeruSnapshotSetRef>(*opened.database);
	return &databases.emplace(resolved, std::move(opened)).first->second;
}

void StatementSnapshots::AddTableParameter(named_parameter_type_map_t &parameters) {
	for (auto name : TABLE_PARAMETERS) {
		parameters[name] = LogicalType::VARCHAR;
	}
}

string StatementSnapshots::TableParameter(const string &function, const named_parameter_map_t &parameters) {
	string result;
	for (auto name : TABLE_PARAMETERS) {
		auto found = parameters.find(name);
		if (found == parameters.end()) {
			continue;
		}
		if (found->second.IsNull() || StringValue::Get(found->second).empty()) {
			throw BinderException("%s: the parameter %s is NULL or empty", function, name);
		}
		if (!result.empty()) {
			throw BinderException("%s: the parameters table and table_name are the same, give one", function);
		}
		result = StringValue::Get(found->second);
	}
	return result;
}

void StatementSnapshots::QueryEnd() {
	unordered_map<string, shared_ptr<MeruSnapshotLease>> ended;
	unordered_map<string, Database> closing;
	{
		lock_guard<mutex> guard(lock);
		std::swap(ended, leases);
		std::swap(closing, databases);
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
