#pragma once

namespace duckdb {
class ExtensionLoader;

//! COPY … TO 'path' (FORMAT merutable, TABLE_NAME 't', PRIMARY_KEY 'a, b'): creates a table or upserts into one.
struct MerutableCopy {
	static void Register(ExtensionLoader &loader);
};

} // namespace duckdb
