#include "common/s3_secrets.hpp"

#include "duckdb/common/exception.hpp"
#include "duckdb/common/exception/binder_exception.hpp"
#include "duckdb/common/string_util.hpp"
#include "duckdb/catalog/catalog_transaction.hpp"
#include "duckdb/main/extension/extension_loader.hpp"
#include "duckdb/main/secret/secret.hpp"
#include "duckdb/main/secret/secret_manager.hpp"

namespace duckdb {

namespace {

constexpr const char *PROVIDER = "config";
constexpr const char *DEFAULT_SCOPE = "s3://";

//! A field of a secret, and the option of the engine that it stands for.
struct Field {
	const char *name;
	const char *option;
	LogicalTypeId type;
	bool is_secret;
	bool is_credential;
};

constexpr Field FIELDS[] = {
	{"key_id", "s3_access_key_id", LogicalTypeId::VARCHAR, false, true},
	{"secret", "s3_secret_access_key", LogicalTypeId::VARCHAR, true, true},
	{"session_token", "s3_session_token", LogicalTypeId::VARCHAR, true, true},
	{"region", "s3_region", LogicalTypeId::VARCHAR, false, false},
	{"endpoint", "s3_endpoint", LogicalTypeId::VARCHAR, false, false},
	{"url_style", "s3_url_style", LogicalTypeId::VARCHAR, false, false},
	{"use_ssl", "s3_use_ssl", LogicalTypeId::BOOLEAN, false, false},
};

unique_ptr<BaseSecret> CreateFromConfig(ClientContext &, CreateSecretInput &input) {
	auto scope = input.scope;
	if (scope.empty()) {
		scope.push_back(DEFAULT_SCOPE);
	}
	auto result = make_uniq<KeyValueSecret>(scope, input.type, input.provider, input.name);
	for (auto &field : FIELDS) {
		result->TrySetValue(field.name, input);
		if (field.is_secret) {
			result->redact_keys.insert(field.name);
		}
	}
	auto given = [&](const char *name) {
		auto value = result->TryGetValue(name);
		return value.IsNull() ? string() : value.ToString();
	};
	if (given("key_id").empty() != given("secret").empty()) {
		throw InvalidInputException("A secret of type %s has both KEY_ID and SECRET, or neither", S3Secrets::TYPE);
	}
	auto style = given("url_style");
	if (!style.empty() && style != "path" && style != "vhost") {
		throw InvalidInputException("URL_STYLE of a secret is 'path' or 'vhost', not '%s'", style);
	}
	return std::move(result);
}

} // namespace

void S3Secrets::Register(ExtensionLoader &loader) {
	SecretType type;
	type.name = TYPE;
	type.deserializer = KeyValueSecret::Deserialize<KeyValueSecret>;
	type.default_provider = PROVIDER;
	type.extension = "merutable";
	loader.RegisterSecretType(std::move(type));

	CreateSecretFunction function;
	function.secret_type = TYPE;
	function.provider = PROVIDER;
	function.function = CreateFromConfig;
	for (auto &field : FIELDS) {
		function.named_parameters[field.name] = LogicalType(field.type);
	}
	loader.RegisterFunction(std::move(function));
}

case_insensitive_map_t<string> S3Secrets::OptionsFor(ClientContext &context, const string &url) {
	auto &manager = SecretManager::Get(context);
	auto transaction = CatalogTransaction::GetSystemCatalogTransaction(context);
	SecretMatch match, other;
	try {
		match = manager.LookupSecret(transaction, url, TYPE);
		other = manager.LookupSecret(transaction, url, HTTPFS_TYPE);
	} catch (PermissionException &) {
		// The first look is for persistent secrets, in a directory that this instance must not read: there are no
		// others.
		return {};
	}
	if (other.HasMatch() && (!match.HasMatch() || other.score > match.score)) {
		match = other;
	}
	case_insensitive_map_t<string> result;
	if (!match.HasMatch()) {
		return result;
	}
	auto secret = dynamic_cast<const KeyValueSecret *>(&match.GetSecret());
	if (!secret) {
		throw InvalidInputException("Secret \"%s\" has no fields that could be read", match.GetSecret().GetName());
	}
	for (auto &field : FIELDS) {
		auto value = secret->TryGetValue(field.name);
		if (!value.IsNull() && !value.ToString().empty()) {
			result[field.option] = value.ToString();
		}
	}
	return result;
}

bool S3Secrets::IsCredential(const string &option) {
	for (auto &field : FIELDS) {
		if (field.is_credential && StringUtil::CIEquals(field.option, option)) {
			return true;
		}
	}
	return false;
}

} // namespace duckdb
