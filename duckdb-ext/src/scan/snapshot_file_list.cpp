#include "scan/snapshot_file_list.hpp"

#include "duckdb/catalog/catalog_entry/table_catalog_entry.hpp"
#include "duckdb/common/types/value.hpp"
#include "duckdb/storage/statistics/node_statistics.hpp"

namespace duckdb {

namespace {

// Ours carry a prefix; the others are what DuckDB's reader looks for.
constexpr const char *OPTION_OVERLAY = "merutable_overlay";
constexpr const char *OPTION_INDEX = "merutable_index";
constexpr const char *OPTION_SIZE = "file_size";
constexpr const char *OPTION_HAS_DELETES = "has_deletes";
//! The name under which rows in memory show up: in the column filename, in plans and in errors.
constexpr const char *OVERLAY_NAME = "/memory";

const Value *FindOption(const OpenFileInfo &file, const char *name) {
	if (!file.extended_info) {
		return nullptr;
	}
	auto entry = file.extended_info->options.find(name);
	return entry == file.extended_info->options.end() ? nullptr : &entry->second;
}

} // namespace

SnapshotFileList::SnapshotFileList(shared_ptr<MeruSnapshotLease> lease_p, shared_ptr<TableCatalogEntry> table_p)
	: lease(std::move(lease_p)), table(std::move(table_p)) {
	auto snapshot = lease->Get();
	auto &info = snapshot->Info();
	live_rows = info.live_rows;
	memory_rows = info.memory_rows;
	version = info.version;
	files.reserve(info.file_count + 1);
	for (idx_t i = 0; i < info.file_count; i++) {
		MeruFileInfo file;
		MeruCall([&](char **err) { return meru_snapshot_file(snapshot->Get(), i, &file, err); });
		if (file.deleted >= file.rows) {
			// Nothing of it is visible.
			continue;
		}
		OpenFileInfo entry(file.path);
		entry.extended_info = make_shared_ptr<ExtendedOpenFileInfo>();
		auto &options = entry.extended_info->options;
		options[OPTION_SIZE] = Value::UBIGINT(file.size);
		options[OPTION_HAS_DELETES] = Value::BOOLEAN(file.deleted > 0);
		options[OPTION_INDEX] = Value::UBIGINT(i);
		files.push_back(std::move(entry));
	}
	if (memory_rows > 0) {
		OpenFileInfo entry(snapshot->Database().Path() + OVERLAY_NAME);
		entry.extended_info = make_shared_ptr<ExtendedOpenFileInfo>();
		entry.extended_info->options[OPTION_OVERLAY] = Value::BOOLEAN(true);
		files.push_back(std::move(entry));
	}
}

bool SnapshotFileList::IsOverlay(const OpenFileInfo &file) {
	return FindOption(file, OPTION_OVERLAY) != nullptr;
}

idx_t SnapshotFileList::SnapshotIndex(const OpenFileInfo &file) {
	auto index = FindOption(file, OPTION_INDEX);
	if (!index) {
		throw InvalidInputException("\"%s\" is no file of a merutable snapshot", file.path);
	}
	return UBigIntValue::Get(*index);
}

bool SnapshotFileList::HasDeletes(const OpenFileInfo &file) {
	auto has_deletes = FindOption(file, OPTION_HAS_DELETES);
	return has_deletes && BooleanValue::Get(*has_deletes);
}

vector<OpenFileInfo> SnapshotFileList::GetAllFiles() const {
	return files;
}

FileExpandResult SnapshotFileList::GetExpandResult() const {
	// For a single file the Parquet extension would limit the threads by what it read when it bound the file, which it
	// never did.
	return files.empty() ? FileExpandResult::NO_FILES : FileExpandResult::MULTIPLE_FILES;
}

idx_t SnapshotFileList::GetTotalFileCount() const {
	return files.size();
}

unique_ptr<NodeStatistics> SnapshotFileList::GetCardinality(ClientContext &) const {
	return make_uniq<NodeStatistics>(live_rows, live_rows);
}

unique_ptr<MultiFileList> SnapshotFileList::Copy() const {
	return make_uniq<SnapshotFileList>(*this);
}

unique_ptr<MultiFileList> SnapshotFileList::ComplexFilterPushdown(ClientContext &, const MultiFileOptions &,
																  MultiFilePushdownInfo &,
																  vector<unique_ptr<Expression>> &) const {
	return nullptr;
}

unique_ptr<MultiFileList> SnapshotFileList::DynamicFilterPushdown(ClientContext &, const MultiFileOptions &,
																  const vector<string> &, const vector<LogicalType> &,
																  const vector<column_t> &, TableFilterSet &) const {
	return nullptr;
}

OpenFileInfo SnapshotFileList::GetFile(idx_t i) const {
	return i < files.size() ? files[i] : OpenFileInfo();
}

} // namespace duckdb
