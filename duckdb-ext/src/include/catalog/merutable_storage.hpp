//! ATTACH … (TYPE merutable).

#pragma once

namespace duckdb {
class ExtensionLoader;

struct MerutableStorage {
	static constexpr const char *TYPE = "merutable";

	static void Register(ExtensionLoader &loader);
};

} // namespace duckdb
