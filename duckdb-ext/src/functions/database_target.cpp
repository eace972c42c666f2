#include "functions/database_target.hpp"

#include "catalog/merutable_catalog.hpp"
#include "common/location.hpp"
#include "duckdb/common/exception/catalog_exception.hpp"
#include "duckdb/main/attached_database.hpp"
#include "duckdb/main/database_manager.hpp"

namespace duckdb {

namespace {

optional_ptr<AttachedDatabase> FindAttached(ClientContext &context, const string &name) {
	auto attached = DatabaseManager::Get(context).GetDatabase(context, name);
	if (attached && StringUtil::CIEquals(attached->GetCatalog().GetCatalogType(), "merutable")) {
		return attached;
	}
	return nullptr;
}

[[noreturn]] void ThrowNothingThere(const string &name_or_path) {
	if (IsObjectStoreUrl(name_or_path)) {
		throw IOException("There is no merutable table at \"%s\"", name_or_path);
	}
	throw CatalogException("\"%s\" is neither an attached merutable database nor a directory with a merutable table",
						   name_or_path);
}

} // namespace

DatabaseLocation DatabaseLocation::Resolve(ClientContext &context, const string &name_or_path) {
	DatabaseLocation result;
	auto attached = FindAttached(context, name_or_path);
	if (attached) {
		auto &catalog = attached->GetCatalog().Cast<MerutableCatalog>();
		result.path = catalog.GetDBPath();
		result.settings = catalog.settings;
		result.attached = catalog.SharedDatabase();
		result.read_only = attached->IsReadOnly();
		return result;
	}
	result.path = ResolveMerutablePath(context, name_or_path);
	result.settings = make_shared_ptr<MeruOpenSettings>(context);
	result.settings->AddSecrets(context, result.path);
	return result;
}

DatabaseTarget DatabaseTarget::Resolve(ClientContext &context, const string &name_or_path) {
	DatabaseTarget result;
	result.name = name_or_path;
	auto location = DatabaseLocation::Resolve(context, name_or_path);
	if (location.attached) {
		if (location.read_only) {
			throw InvalidInputException("Database \"%s\" is attached in read-only mode", name_or_path);
		}
		result.database = std::move(location.attached);
		return result;
	}
	// Without this, opening would say the same of a directory with something else in it as of none.
	auto reader = MeruDatabase::OpenReader(context, location.path);
	if (!reader || MeruTableListRef(*reader).Count() == 0) {
		ThrowNothingThere(name_or_path);
	}
	location.settings->Set("create_if_missing", "false");
	result.database = MeruDatabase::Open(context, location.path, *location.settings);
	return result;
}

DatabaseTarget DatabaseTarget::ResolveReader(ClientContext &context, const string &name_or_path) {
	DatabaseTarget result;
	result.name = name_or_path;
	auto location = DatabaseLocation::Resolve(context, name_or_path);
	result.database =
		location.attached ? std::move(location.attached) : MeruDatabase::OpenReader(context, location.path);
	if (!result.database) {
		ThrowNothingThere(name_or_path);
	}
	if (location.read_only) {
		result.database->Refresh(context);
	}
	return result;
}

void CompactTables(MeruDatabase &database, MeruProgress &progress, const MeruWatch *watch) {
	MeruTableListRef tables(database);
	idx_t number = 0;
	for (auto &info : tables) {
		progress.BeginPart(number++, tables.Count());
		auto table = database.OpenTable(info.id);
		if (!table) {
			continue; // dropped meanwhile
		}
		MeruCallIfFound([&](char **err) { return meru_compact_watched(table->Get(), watch, err); });
	}
}

} // namespace duckdb
