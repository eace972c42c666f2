//! Credentials of S3 and where it is, out of DuckDB's secrets.

#pragma once

#include "duckdb/common/case_insensitive_map.hpp"
#include "duckdb/common/common.hpp"

namespace duckdb {
class ClientContext;
class ExtensionLoader;

struct S3Secrets {
	//! httpfs has the type s3. Ours has the same fields, and is there without it.
	static constexpr const char *TYPE = "merutable_s3";
	static constexpr const char *HTTPFS_TYPE = "s3";

	static void Register(ExtensionLoader &loader);
	//! What the secret says whose scope fits a URL best, as options of the engine; empty where there is none. Of two
	//! that fit equally well it is the one of our type.
	static case_insensitive_map_t<string> OptionsFor(ClientContext &context, const string &url);
	//! Whether an option of the engine is a secret, or says whose secret it is.
	static bool IsCredential(const string &option);
};

} // namespace duckdb
