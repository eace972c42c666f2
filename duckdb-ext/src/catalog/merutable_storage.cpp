#include "catalog/merutable_storage.hpp"

#include "catalog/merutable_catalog.hpp"
#include "catalog/merutable_transaction_manager.hpp"
#include "duckdb/common/exception/binder_exception.hpp"
#include "duckdb/common/string_util.hpp"
#include "duckdb/main/attached_database.hpp"
#include "duckdb/main/config.hpp"
#include "duckdb/main/extension/extension_loader.hpp"
#include "duckdb/parser/parsed_data/attach_info.hpp"
#include "duckdb/storage/storage_extension.hpp"

namespace duckdb {

namespace {

unique_ptr<Catalog> Attach(optional_ptr<StorageExtensionInfo>, ClientContext &context, AttachedDatabase &db,
						   const string &, AttachInfo &info, AttachOptions &options) {
	if (info.path == IN_MEMORY_PATH) {
		throw BinderException("A merutable database is a directory: \"%s\" is not supported", info.path);
	}
	auto path = ResolveMerutablePath(context, info.path);
	MeruOpenSettings settings(context);
	settings.Set("read_only", options.access_mode == AccessMode::READ_ONLY ? "true" : "false");
	for (auto &option : options.options) {
		if (option.second.IsNull()) {
			throw BinderException("ATTACH: option \"%s\" is NULL", option.first);
		}
		settings.Set(StringUtil::Lower(option.first), option.second.ToString());
	}
	return make_uniq<MerutableCatalog>(db, MeruDatabase::Open(path, settings.Get()), info.path);
}

unique_ptr<TransactionManager> MakeTransactionManager(optional_ptr<StorageExtensionInfo>, AttachedDatabase &db,
													  Catalog &catalog) {
	return make_uniq<MerutableTransactionManager>(db, catalog.Cast<MerutableCatalog>());
}

} // namespace

void MerutableStorage::Register(ExtensionLoader &loader) {
	auto extension = make_shared_ptr<StorageExtension>();
	extension->attach = Attach;
	extension->create_transaction_manager = MakeTransactionManager;
	StorageExtension::Register(DBConfig::GetConfig(loader.GetDatabaseInstance()), TYPE, std::move(extension));
}

} // namespace duckdb
