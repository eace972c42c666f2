#include "functions/merutable_functions.hpp"

#include "common/meru_status.hpp"
#include "duckdb/common/exception.hpp"
#include "duckdb/common/types/value.hpp"
#include "duckdb/main/config.hpp"
#include "duckdb/main/database.hpp"
#include "duckdb/main/extension/extension_loader.hpp"

namespace duckdb {

namespace {

constexpr uint64_t READER_CACHE_DEFAULT = 8;

void SetReaderCache(ClientContext &, SetScope, Value &value) {
	if (value.IsNull()) {
		throw InvalidInputException("merutable_reader_cache is a number of handles, not NULL");
	}
	auto handles = UBigIntValue::Get(value);
	MeruCall([&](char **err) { return meru_reader_cache_set(handles, err); });
}

//! Throws where the engine would not take the value of an option.
void CheckOption(const char *setting, const char *option, const Value &value) {
	if (value.IsNull()) {
		return; // not set, as after RESET
	}
	auto options = meru_options_new();
	if (!options) {
		throw IOException("The engine gave no options: it does not run in a process that was forked");
	}
	char *message = nullptr;
	auto status = meru_options_set(options, option, StringValue::Get(value).c_str(), &message);
	meru_options_free(options);
	if (status != MeruStatus_Ok) {
		string text = message ? message : "";
		meru_free_string(message);
		throw InvalidInputException("%s: %s", setting, text);
	}
}

void SetMemoryLimit(ClientContext &, SetScope, Value &value) {
	CheckOption(MerutableSettings::MEMORY_LIMIT, "memory_limit", value);
}

void SetDurability(ClientContext &, SetScope, Value &value) {
	CheckOption(MerutableSettings::DURABILITY, "durability", value);
}

} // namespace

void MerutableSettings::Register(ExtensionLoader &loader) {
	auto &config = DBConfig::GetConfig(loader.GetDatabaseInstance());
	config.AddExtensionOption(
		"merutable_reader_cache", "How many idle read-only merutable databases this process keeps open (0 to 1024)",
		LogicalType::UBIGINT, Value::UBIGINT(READER_CACHE_DEFAULT), SetReaderCache, SetScope::GLOBAL);
	config.AddExtensionOption(
		MEMORY_LIMIT,
		"The memory budget of merutable databases that are opened without the option memory_limit "
		"(a size such as 256MB; by default a quarter of memory_limit, from 64MiB to 1GiB)",
		LogicalType::VARCHAR, Value(LogicalType::VARCHAR), SetMemoryLimit);
	config.AddExtensionOption(
		DURABILITY,
		"When writes to merutable databases that are opened without the option durability survive a "
		"power cut (sync, the default, interval or os)",
		LogicalType::VARCHAR, Value(LogicalType::VARCHAR), SetDurability);
}

} // namespace duckdb
