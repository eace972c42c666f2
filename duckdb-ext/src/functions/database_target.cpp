#include "functions/database_target.hpp"

#include "common/snapshot.hpp"
#include "duckdb/catalog/catalog.hpp"
#include "duckdb/common/exception/catalog_exception.hpp"
#include "duckdb/main/attached_database.hpp"
#include "duckdb/main/database_manager.hpp"

namespace duckdb {

DatabaseTarget DatabaseTarget::Resolve(ClientContext &context, const string &name_or_path) {
	DatabaseTarget result;
	result.name = name_or_path;
	MeruOpenSettings settings;
	settings.Set("create_if_missing", "false");
	auto path = name_or_path;
	auto attached = DatabaseManager::Get(context).GetDatabase(context, name_or_path);
	if (attached && StringUtil::CIEquals(attached->GetCatalog().GetCatalogType(), "merutable")) {
		path = attached->GetCatalog().GetDBPath();
		if (attached->IsReadOnly()) {
			throw InvalidInputException("Database \"%s\" is attached in read-only mode", name_or_path);
		}
	} else {
		path = ResolveMerutablePath(context, name_or_path);
		// Without this, opening would say the same of a directory with something else in it as of none.
		auto reader = MeruDatabase::OpenReader(path);
		if (!reader || !MeruSnapshotRef::Acquire(reader)) {
			throw CatalogException(
				"\"%s\" is neither an attached merutable database nor a directory with a merutable table",
				name_or_path);
		}
	}
	// One directory is one engine in a process, so this is the attached one.
	result.database = MeruDatabase::Open(path, settings.Get());
	return result;
}

} // namespace duckdb
