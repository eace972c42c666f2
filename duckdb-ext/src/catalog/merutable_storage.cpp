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

//! The one option that is not the engine's.
constexpr const char *OPTION_ON_DUPLICATE = "on_duplicate";

OnDuplicate ParseOnDuplicate(const string &text) {
	if (StringUtil::CIEquals(text, "replace")) {
		return OnDuplicate::REPLACE;
	}
	if (StringUtil::CIEquals(text, "error")) {
		return OnDuplicate::ERROR;
	}
	if (StringUtil::CIEquals(text, "ignore")) {
		return OnDuplicate::IGNORE;
	}
	throw BinderException("ATTACH: option ON_DUPLICATE is 'replace', 'error' or 'ignore', not '%s'", text);
}

unique_ptr<Catalog> Attach(optional_ptr<StorageExtensionInfo>, ClientContext &context, AttachedDatabase &db,
						   const string &, AttachInfo &info, AttachOptions &options) {
	if (info.path == IN_MEMORY_PATH) {
		throw BinderException("A merutable database is a directory: \"%s\" is not supported", info.path);
	}
	auto path = ResolveMerutablePath(context, info.path);
	MeruOpenSettings settings(context);
	settings.Set("read_only", options.access_mode == AccessMode::READ_ONLY ? "true" : "false");
	auto on_duplicate = OnDuplicate::REPLACE;
	for (auto &option : options.options) {
		if (option.second.IsNull()) {
			throw BinderException("ATTACH: option \"%s\" is NULL", option.first);
		}
		if (StringUtil::CIEquals(option.first, OPTION_ON_DUPLICATE)) {
			on_duplicate = ParseOnDuplicate(option.second.ToString());
			continue;
		}
		settings.Set(StringUtil::Lower(option.first), option.second.ToString());
	}
	auto result = make_uniq<MerutableCatalog>(db, MeruDatabase::Open(path, settings.Get()), info.path);
	result->on_duplicate = on_duplicate;
	return std::move(result);
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
