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

} // namespace

void MerutableSettings::Register(ExtensionLoader &loader) {
	auto &config = DBConfig::GetConfig(loader.GetDatabaseInstance());
	config.AddExtensionOption(
		"merutable_reader_cache", "How many idle read-only merutable databases this process keeps open (0 to 1024)",
		LogicalType::UBIGINT, Value::UBIGINT(READER_CACHE_DEFAULT), SetReaderCache, SetScope::GLOBAL);
}

} // namespace duckdb
