//! Where databases are: directories, and URLs of object stores.

#pragma once

#include "duckdb/common/common.hpp"

namespace duckdb {
class ClientContext;

//! Whether a path is the URL of an object store rather than a directory's.
bool IsObjectStoreUrl(const string &path);

//! The absolute form of a path that a user gave, or the URL: ~ expanded, and refused where the instance must not touch
//! files.
string ResolveMerutablePath(ClientContext &context, const string &path);

//! Refuses the destination of a mirror where the instance must not touch files.
void RequireMirrorAccess(ClientContext &context, const string &destination);

} // namespace duckdb
