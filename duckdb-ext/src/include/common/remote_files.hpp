//! Data files of databases in object stores, for DuckDB's own Parquet reader: the engine reads them, so that neither
//! httpfs nor its secrets are needed.

#pragma once

#include "common/snapshot.hpp"
#include "duckdb/common/file_system.hpp"

namespace duckdb {
struct DBConfig;

//! A file of a snapshot that only the engine can read.
struct RemoteFile {
	//! Whether the engine's path of a file is one of those.
	static bool IsRemote(const string &path);
	//! What DuckDB opens it by: path in a scheme of ours, which httpfs does not claim. index: its place in the lease's
	//! snapshot.
	static OpenFileInfo Make(const string &path, shared_ptr<MeruSnapshotLease> lease, idx_t index);
	//! The path as users know it; others than those of Make stay as they are.
	static string DisplayPath(const string &path);
};

//! Serves what RemoteFile::Make() names, and nothing else.
class RemoteFileSystem : public FileSystem {
  public:
	static constexpr const char *NAME = "MerutableFileSystem";

	//! config: that of the instance, which owns this one.
	explicit RemoteFileSystem(DBConfig &config) : config(config) {
	}
	//! Once for each instance.
	static void Register(DatabaseInstance &instance);

	void Read(FileHandle &handle, void *buffer, int64_t nr_bytes, idx_t location) override;
	int64_t Read(FileHandle &handle, void *buffer, int64_t nr_bytes) override;
	int64_t GetFileSize(FileHandle &handle) override;
	timestamp_t GetLastModifiedTime(FileHandle &handle) override;
	string GetVersionTag(FileHandle &handle) override;
	FileType GetFileType(FileHandle &handle) override;
	void Seek(FileHandle &handle, idx_t location) override;
	void Reset(FileHandle &handle) override;
	idx_t SeekPosition(FileHandle &handle) override;
	bool CanSeek() override {
		return true;
	}
	bool OnDiskFile(FileHandle &) override {
		return false;
	}
	bool CanHandleFile(const string &path) override;
	//! What enable_external_access and allowed_directories are asked about: the object's URL.
	string CanonicalizePath(const string &path, optional_ptr<FileOpener> opener = nullptr) override;
	string PathSeparator(const string &) override {
		return "/";
	}
	std::string GetName() const override {
		return NAME;
	}

  protected:
	unique_ptr<FileHandle> OpenFileExtended(const OpenFileInfo &file, FileOpenFlags flags,
											optional_ptr<FileOpener> opener) override;
	bool SupportsOpenFileExtended() const override {
		return true;
	}

  private:
	DBConfig &config;
};

} // namespace duckdb
