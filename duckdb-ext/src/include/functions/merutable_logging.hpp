//! The engine's events in DuckDB's log, as type 'merutable'.

#pragma once

namespace duckdb {
class ExtensionLoader;

struct MerutableLogging {
	static void Register(ExtensionLoader &loader);
};

} // namespace duckdb
