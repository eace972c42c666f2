#include "common/remote_files.hpp"

#include "duckdb/common/exception.hpp"
#include "duckdb/common/file_opener.hpp"
#include "duckdb/common/string_util.hpp"
#include "duckdb/common/types/timestamp.hpp"
#include "duckdb/main/config.hpp"
#include "duckdb/main/database.hpp"

namespace duckdb {

namespace {

constexpr const char *SCHEME = "merutable:";
//! Stands in the options of a RemoteFileInfo, and nowhere else.
constexpr const char *OPTION_REMOTE = "merutable_remote";

//! Goes with the file through DuckDB's reader to the file system below.
struct RemoteFileInfo : public ExtendedOpenFileInfo {
	shared_ptr<MeruSnapshotLease> lease;
	idx_t index = 0;
};

//! Keeps what it reads from being removed, whether or not its snapshot is still there.
class RemoteFileHandle : public FileHandle {
  public:
	RemoteFileHandle(FileSystem &system, string path, FileOpenFlags flags, shared_ptr<MeruDatabase> database_p,
					 const MeruSnapshot *snapshot, idx_t index, optional_ptr<ClientContext> client)
		: FileHandle(system, std::move(path), flags), database(std::move(database_p)) {
		MeruCall([&](char **err) { return meru_snapshot_file_open(snapshot, index, &file, err); });
		if (client) {
			meru_file_set_interrupt(file, MeruWriteBatch::Interrupted, client.get());
		}
	}
	~RemoteFileHandle() override {
		RemoteFileHandle::Close();
	}
	void Close() override {
		meru_file_free(file);
		file = nullptr;
	}

	//! How many bytes there were.
	idx_t ReadAt(void *buffer, idx_t count, idx_t location) const {
		uintptr_t got = 0;
		MeruCall([&](char **err) { return meru_file_read(file, location, buffer, count, &got, err); });
		return got;
	}
	idx_t Size() const {
		return meru_file_size(file);
	}

	idx_t position = 0;

  private:
	//! Freed after the file.
	shared_ptr<MeruDatabase> database;
	MeruFile *file = nullptr;
};

} // namespace

bool RemoteFile::IsRemote(const string &path) {
	return path.find("://") != string::npos && path[0] != '/';
}

OpenFileInfo RemoteFile::Make(const string &path, shared_ptr<MeruSnapshotLease> lease, idx_t index) {
	auto info = make_shared_ptr<RemoteFileInfo>();
	info->lease = std::move(lease);
	info->index = index;
	info->options[OPTION_REMOTE] = Value::BOOLEAN(true);
	OpenFileInfo result(SCHEME + path);
	result.extended_info = std::move(info);
	return result;
}

string RemoteFile::DisplayPath(const string &path) {
	return StringUtil::StartsWith(path, SCHEME) ? path.substr(strlen(SCHEME)) : path;
}

void RemoteFileSystem::Register(DatabaseInstance &instance) {
	auto &config = DBConfig::GetConfig(instance);
	auto &system = *config.file_system;
	for (auto &name : system.ListSubSystems()) {
		if (name == NAME) {
			return;
		}
	}
	system.RegisterSubSystem(make_uniq<RemoteFileSystem>(config));
}

bool RemoteFileSystem::CanHandleFile(const string &path) {
	return StringUtil::StartsWith(path, SCHEME);
}

string RemoteFileSystem::CanonicalizePath(const string &path, optional_ptr<FileOpener>) {
	auto url = RemoteFile::DisplayPath(path);
	if (!IsObjectStoreUrl(url)) {
		return path;
	}
	auto allowed = AllowedUrl(config, url);
	return allowed.empty() ? url : allowed;
}

unique_ptr<FileHandle> RemoteFileSystem::OpenFileExtended(const OpenFileInfo &file, FileOpenFlags flags,
														  optional_ptr<FileOpener> opener) {
	if (!file.extended_info || file.extended_info->options.count(OPTION_REMOTE) == 0) {
		throw PermissionException("\"%s\" can only be read by scans of merutable tables", file.path);
	}
	if (flags.OpenForWriting()) {
		throw PermissionException("\"%s\" is a data file of a merutable table: it is never written to", file.path);
	}
	auto &info = static_cast<const RemoteFileInfo &>(*file.extended_info);
	auto snapshot = info.lease->Get();
	return make_uniq<RemoteFileHandle>(*this, file.path, flags, snapshot->SharedDatabase(), snapshot->Get(), info.index,
									   FileOpener::TryGetClientContext(opener));
}

void RemoteFileSystem::Read(FileHandle &handle, void *buffer, int64_t nr_bytes, idx_t location) {
	auto &file = handle.Cast<RemoteFileHandle>();
	auto wanted = NumericCast<idx_t>(nr_bytes);
	auto got = file.ReadAt(buffer, wanted, location);
	if (got < wanted) {
		throw IOException("\"%s\" ends at byte %llu: %llu bytes from %llu on were to be read",
						  RemoteFile::DisplayPath(handle.path), file.Size(), wanted, location);
	}
}

int64_t RemoteFileSystem::Read(FileHandle &handle, void *buffer, int64_t nr_bytes) {
	auto &file = handle.Cast<RemoteFileHandle>();
	auto got = file.ReadAt(buffer, NumericCast<idx_t>(nr_bytes), file.position);
	file.position += got;
	return NumericCast<int64_t>(got);
}

int64_t RemoteFileSystem::GetFileSize(FileHandle &handle) {
	return NumericCast<int64_t>(handle.Cast<RemoteFileHandle>().Size());
}

timestamp_t RemoteFileSystem::GetLastModifiedTime(FileHandle &) {
	return timestamp_t(0); // not known: the version tag stands for the file
}

string RemoteFileSystem::GetVersionTag(FileHandle &handle) {
	// A data file is named by a UUID, and its bytes never change.
	auto &path = handle.path;
	auto slash = path.find_last_of('/');
	return slash == string::npos ? path : path.substr(slash + 1);
}

FileType RemoteFileSystem::GetFileType(FileHandle &) {
	return FileType::FILE_TYPE_REGULAR;
}

void RemoteFileSystem::Seek(FileHandle &handle, idx_t location) {
	handle.Cast<RemoteFileHandle>().position = location;
}

void RemoteFileSystem::Reset(FileHandle &handle) {
	handle.Cast<RemoteFileHandle>().position = 0;
}

idx_t RemoteFileSystem::SeekPosition(FileHandle &handle) {
	return handle.Cast<RemoteFileHandle>().position;
}

} // namespace duckdb
