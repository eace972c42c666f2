//! Where databases are: directories, and URLs of object stores.

#pragma once

#include "duckdb/common/common.hpp"

namespace duckdb {
class ClientContext;
struct DBConfig;

//! Whether a path is the URL of an object store rather than a directory's.
bool IsObjectStoreUrl(const string &path);

//! A MeruStatus about a place: what is missing at a URL is an object, which is an error of input and output.
int StatusAt(const string &path, int status);

//! The URL in the form in which DuckDB's rules for file access let it pass, empty where they do not. DuckDB takes the
//! URLs in allowed_directories for paths below the working directory, as long as httpfs is not there.
string AllowedUrl(DBConfig &config, const string &url);

//! The absolute form of a path that a user gave, or the URL: ~ expanded, and refused where the instance must not touch
//! files.
string ResolveMerutablePath(ClientContext &context, const string &path);

//! Refuses the destination of a mirror where the instance must not touch files.
void RequireMirrorAccess(ClientContext &context, const string &destination);

} // namespace duckdb
