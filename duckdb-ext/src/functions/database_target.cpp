#include "functions/database_target.hpp"

#include "common/snapshot.hpp"
#include "duckdb/catalog/catalog.hpp"
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
	throw CatalogException("\"%s\" is neither an attached merutable database nor a directory with a merutable table",
						   name_or_path);
}

} // namespace

DatabaseTarget DatabaseTarget::Resolve(ClientContext &context, const string &name_or_path) {
	DatabaseTarget result;
	result.name = name_or_path;
	MeruOpenSettings settings(context);
	settings.Set("create_if_missing", "false");
	auto path = name_or_path;
	auto attached = FindAttached(context, name_or_path);
	if (attached) {
		path = attached->GetCatalog().GetDBPath();
		if (attached->IsReadOnly()) {
			throw InvalidInputException("Database \"%s\" is attached in read-only mode", name_or_path);
		}
	} else {
		path = ResolveMerutablePath(context, name_or_path);
		// Without this, opening would say the same of a directory with something else in it as of none.
		auto reader = MeruDatabase::OpenReader(context, path);
		if (!reader || MeruTableListRef(*reader).Count() == 0) {
			ThrowNothingThere(name_or_path);
		}
	}
	// One directory is one engine in a process, so this is the attached one.
	result.database = MeruDatabase::Open(path, settings.Get());
	return result;
}

string DatabaseTarget::ResolvePath(ClientContext &context, const string &name_or_path) {
	auto attached = FindAttached(context, name_or_path);
	return attached ? attached->GetCatalog().GetDBPath() : ResolveMerutablePath(context, name_or_path);
}

DatabaseTarget DatabaseTarget::ResolveReader(ClientContext &context, const string &name_or_path) {
	DatabaseTarget result;
	result.name = name_or_path;
	result.database = MeruDatabase::OpenReader(context, ResolvePath(context, name_or_path));
	if (!result.database) {
		ThrowNothingThere(name_or_path);
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
