#include "common/location.hpp"

#include "common/meru_status.hpp"
#include "common/remote_files.hpp"
#include "duckdb/common/exception.hpp"
#include "duckdb/common/file_system.hpp"
#include "duckdb/common/string_util.hpp"
#include "duckdb/main/client_context.hpp"
#include "duckdb/main/config.hpp"
#include "duckdb/main/settings.hpp"

namespace duckdb {

namespace {

constexpr const char *S3_SCHEME = "s3://";
constexpr const char *FILE_SCHEME = "file://";
//! httpfs's file system for S3: who disables it means the store.
constexpr const char *HTTPFS_S3 = "S3FileSystem";

//! The scheme of a URL with its ://, empty for a path.
string SchemeOf(const string &path) {
	auto end = path.find("://");
	if (end == string::npos || end == 0 || !StringUtil::CharacterIsAlpha(path[0])) {
		return string();
	}
	for (idx_t i = 0; i < end; i++) {
		auto c = path[i];
		if (!StringUtil::CharacterIsAlphaNumeric(c) && c != '+' && c != '-' && c != '.') {
			return string();
		}
	}
	return path.substr(0, end + 3);
}

[[noreturn]] void ThrowNoAccess(const string &path) {
	throw PermissionException("Cannot access directory \"%s\" - file system operations are disabled by configuration",
							  path);
}

void RequireAccess(ClientContext &context, const string &path) {
	if (!DBConfig::GetConfig(context).CanAccessFile(path, FileType::FILE_TYPE_DIR)) {
		ThrowNoAccess(path);
	}
}

void RequireDirectoryAccess(ClientContext &context, const string &path) {
	if (FileSystem::GetFileSystem(context).IsDisabledForPath(path)) {
		ThrowNoAccess(path);
	}
	RequireAccess(context, path);
}

//! What stands in an allowed path behind the scheme, if it is a URL.
string AllowedTail(const string &allowed) {
	constexpr const char *AS_PATH = "/s3:/";
	if (StringUtil::StartsWith(allowed, S3_SCHEME)) {
		return allowed.substr(strlen(S3_SCHEME));
	}
	auto at = allowed.find(AS_PATH);
	return at == string::npos ? string() : allowed.substr(at + strlen(AS_PATH));
}

void RequireUrlAccess(ClientContext &context, const string &url) {
	for (auto &part : StringUtil::Split(url.substr(strlen(S3_SCHEME)), "/")) {
		if (part == "." || part == "..") {
			// To DuckDB, which compares texts, it would lie below a directory that is allowed.
			throw InvalidInputException("The URL \"%s\" has a part \"%s\", which names nothing in an object store", url,
										part);
		}
	}
	auto &files = FileSystem::GetFileSystem(context);
	if (files.SubSystemIsDisabled(RemoteFileSystem::NAME) || files.SubSystemIsDisabled(HTTPFS_S3)) {
		ThrowNoAccess(url);
	}
	if (AllowedUrl(DBConfig::GetConfig(context), url).empty()) {
		ThrowNoAccess(url);
	}
}

//! The path that a file URI stands for, as the engine reads it.
string PathOfUri(const string &uri) {
	auto path = StringUtil::URLDecode(uri.substr(strlen(FILE_SCHEME)));
	if (path.empty() || path[0] != '/') {
		throw InvalidInputException("\"%s\" is not a file URI of this machine", uri);
	}
	return path;
}

} // namespace

bool IsObjectStoreUrl(const string &path) {
	return StringUtil::StartsWith(path, S3_SCHEME);
}

int StatusAt(const string &path, int status) {
	return status == MeruStatus_ErrNotFound && IsObjectStoreUrl(path) ? int(MeruStatus_ErrIo) : status;
}

string AllowedUrl(DBConfig &config, const string &url) {
	if (Settings::Get<EnableExternalAccessSetting>(config)) {
		return url;
	}
	auto path = url.substr(strlen(S3_SCHEME));
	for (auto &allowed : config.options.allowed_paths) {
		if (AllowedTail(allowed) == path) {
			return allowed;
		}
	}
	auto directory = StringUtil::EndsWith(path, "/") ? path : path + "/";
	for (auto &allowed : config.options.allowed_directories) {
		auto tail = AllowedTail(allowed);
		if (!tail.empty() && StringUtil::StartsWith(directory, tail)) {
			return allowed + directory.substr(tail.size());
		}
	}
	return string();
}

string ResolveMerutablePath(ClientContext &context, const string &path) {
	if (path.empty()) {
		throw InvalidInputException("The path of a merutable database is empty");
	}
	if (path.find('\0') != string::npos) {
		throw InvalidInputException("The path of a merutable database holds a zero byte");
	}
	auto scheme = SchemeOf(path);
	if (scheme == S3_SCHEME) {
		RequireUrlAccess(context, path);
		return path;
	}
	if (!scheme.empty() && scheme != FILE_SCHEME) {
		throw InvalidInputException(
			"\"%s\" is no place for a merutable database: that is a path, s3://bucket/prefix or "
			"file:///directory",
			path);
	}
	auto result = scheme.empty() ? FileSystem::GetFileSystem(context).ExpandPath(path) : PathOfUri(path);
	RequireDirectoryAccess(context, result);
	return result;
}

void RequireMirrorAccess(ClientContext &context, const string &destination) {
	auto scheme = SchemeOf(destination);
	if (scheme == S3_SCHEME) {
		RequireUrlAccess(context, destination);
	} else if (scheme == FILE_SCHEME) {
		RequireDirectoryAccess(context, PathOfUri(destination));
	}
	// Others the engine refuses.
}

} // namespace duckdb
