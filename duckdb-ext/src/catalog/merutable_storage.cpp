#include "catalog/merutable_storage.hpp"

#include "catalog/merutable_catalog.hpp"
#include "catalog/merutable_transaction_manager.hpp"
#include "common/s3_secrets.hpp"
#include "duckdb/common/exception/binder_exception.hpp"
#include "duckdb/common/file_system.hpp"
#include "duckdb/common/string_util.hpp"
#include "duckdb/main/attached_database.hpp"
#include "duckdb/main/config.hpp"
#include "duckdb/main/extension/extension_loader.hpp"
#include "duckdb/parser/parsed_data/attach_info.hpp"
#include "duckdb/planner/operator/logical_simple.hpp"
#include "duckdb/planner/planner_extension.hpp"
#include "duckdb/storage/storage_extension.hpp"

namespace duckdb {

namespace {

//! The one option that is not the engine's.
constexpr const char *OPTION_ON_DUPLICATE = "on_duplicate";
constexpr const char *OPTION_MIRROR = "mirror";
//! What is shown for a secret.
constexpr const char *HIDDEN = "<hidden>";

//! Whether an option names a directory that the engine writes to.
bool IsDirectoryOption(const string &name) {
	return name == "wal_dir" || name == "object_cache_dir";
}

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

//! Before a URL, so that DuckDB does not take it for one.
constexpr const char *URL_PREFIX = "merutable:";

//! A URL without that; other paths stay as they are.
string ShownUrl(const string &path) {
	if (!StringUtil::StartsWith(path, URL_PREFIX)) {
		return path;
	}
	auto url = path.substr(strlen(URL_PREFIX));
	return FileSystem::IsRemoteFile(url) ? url : path;
}

//! DuckDB loads httpfs for whatever is attached by a URL, and gives up where there is none; the engine needs it not.
void HideUrl(PlannerExtensionInput &, BoundStatement &statement) {
	if (!statement.plan || statement.plan->type != LogicalOperatorType::LOGICAL_ATTACH) {
		return;
	}
	auto &info = statement.plan->Cast<LogicalSimple>().info->Cast<AttachInfo>();
	auto type = info.options.find("type");
	if (type == info.options.end()) {
		if (ShownUrl(info.path) == info.path) {
			return;
		}
		// 'merutable:s3://…' is a way to name the type.
		info.options["type"] = Value(MerutableStorage::TYPE);
	} else if (StringUtil::CIEquals(type->second.ToString(), MerutableStorage::TYPE) &&
			   FileSystem::IsRemoteFile(info.path)) {
		info.path = URL_PREFIX + info.path;
	} else {
		return;
	}
	for (auto mode : {"read_only", "readonly", "read_write", "readwrite"}) {
		if (info.options.count(mode) > 0) {
			return;
		}
	}
	info.options["read_only"] = Value::BOOLEAN(true); // DuckDB's default for URLs
}

unique_ptr<Catalog> Attach(optional_ptr<StorageExtensionInfo>, ClientContext &context, AttachedDatabase &db,
						   const string &, AttachInfo &info, AttachOptions &options) {
	if (info.path == IN_MEMORY_PATH) {
		throw BinderException("A merutable database is a directory: \"%s\" is not supported", info.path);
	}
	auto path = ResolveMerutablePath(context, ShownUrl(info.path));
	auto settings = make_shared_ptr<MeruOpenSettings>(context);
	settings->Set("read_only", options.access_mode == AccessMode::READ_ONLY ? "true" : "false");
	auto on_duplicate = OnDuplicate::REPLACE;
	string mirror;
	for (auto &option : options.options) {
		if (option.second.IsNull()) {
			throw BinderException("ATTACH: option \"%s\" is NULL", option.first);
		}
		auto name = StringUtil::Lower(option.first);
		auto value = option.second.ToString();
		if (name == OPTION_ON_DUPLICATE) {
			on_duplicate = ParseOnDuplicate(value);
			continue;
		}
		if (name == OPTION_MIRROR) {
			mirror = value;
			RequireMirrorAccess(context, mirror);
		} else if (IsDirectoryOption(name) && !value.empty()) {
			value = ResolveMerutablePath(context, value);
		}
		settings->Set(name, value);
		if (S3Secrets::IsCredential(name)) {
			option.second = Value(HIDDEN); // DuckDB keeps the options, and shows them in duckdb_databases()
		}
	}
	settings->AddSecrets(context, path);
	settings->AddSecrets(context, mirror);
	auto result = make_uniq<MerutableCatalog>(db, MeruDatabase::Open(context, path, *settings), info.path);
	result->on_duplicate = on_duplicate;
	result->settings = std::move(settings);
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
	auto &config = DBConfig::GetConfig(loader.GetDatabaseInstance());
	StorageExtension::Register(config, TYPE, std::move(extension));
	PlannerExtension planner;
	planner.post_bind_function = HideUrl;
	PlannerExtension::Register(config, std::move(planner));
}

} // namespace duckdb
