#include "scan/snapshot_file_list.hpp"

#include "duckdb/catalog/catalog_entry/table_catalog_entry.hpp"
#include "duckdb/common/multi_file/multi_file_reader.hpp"
#include "duckdb/optimizer/filter_combiner.hpp"
#include "duckdb/common/types/value.hpp"
#include "duckdb/storage/statistics/node_statistics.hpp"
#include "common/remote_files.hpp"
#include "scan/file_pruner.hpp"
#include "scan/key_columns.hpp"
#include "scan/row_columns.hpp"
#include "scan/snapshot_part.hpp"

#include <algorithm>

namespace duckdb {

namespace {

// Ours carry a prefix; the others are what DuckDB's reader looks for.
constexpr const char *OPTION_OVERLAY = "merutable_overlay";
constexpr const char *OPTION_INDEX = "merutable_index";
constexpr const char *OPTION_PLACE = "merutable_place";
constexpr const char *OPTION_SIZE = "file_size";
constexpr const char *OPTION_ROWS = "merutable_rows";
constexpr const char *OPTION_SEQ = "merutable_seq";
//! The name under which rows in memory show up: in the column filename, in plans and in errors.
constexpr const char *OVERLAY_NAME = "/memory";

const Value *FindOption(const OpenFileInfo &file, const char *name) {
	if (!file.extended_info) {
		return nullptr;
	}
	auto entry = file.extended_info->options.find(name);
	return entry == file.extended_info->options.end() ? nullptr : &entry->second;
}

idx_t NumberOf(const OpenFileInfo &file, const char *option) {
	auto number = FindOption(file, option);
	if (!number) {
		throw InvalidInputException("\"%s\" is no file of a merutable snapshot", file.path);
	}
	return UBigIntValue::Get(*number);
}

} // namespace

SnapshotFileList::SnapshotFileList(shared_ptr<MeruSnapshotLease> lease_p, shared_ptr<TableCatalogEntry> table_p)
	: lease(std::move(lease_p)), whole_lease(lease), table(std::move(table_p)),
	  counters(make_shared_ptr<ScanCounters>()) {
	ReadInfo();
	whole_file_count = file_count;
}

SnapshotFileList::SnapshotFileList(const SnapshotFileList &whole, shared_ptr<MeruSnapshotLease> lease_p,
								   KeyBounds bounds_p)
	: lease(std::move(lease_p)), whole_lease(whole.whole_lease), table(whole.table), bounds(std::move(bounds_p)),
	  counters(make_shared_ptr<ScanCounters>()), backwards(whole.backwards), whole_file_count(whole.whole_file_count) {
	ReadInfo();
}

void SnapshotFileList::ReadInfo() {
	auto &info = lease->Get()->Info();
	file_count = info.file_count;
	live_rows = info.live_rows;
	memory_rows = info.memory_rows;
	looked_up = info.looked_up != 0;
	version = info.version;
}

void SnapshotFileList::ListCandidates() const {
	if (listed) {
		return;
	}
	auto snapshot = lease->Get();
	vector<pair<string, OpenFileInfo>> by_key;
	by_key.reserve(file_count);
	for (idx_t i = 0; i < file_count; i++) {
		MeruDataFile file;
		MeruCall([&](char **err) { return meru_snapshot_data_file(snapshot->Get(), i, &file, err); });
		if (file.deleted >= file.rows) {
			// Nothing of it is visible.
			continue;
		}
		OpenFileInfo entry(file.path);
		if (RemoteFile::IsRemote(entry.path)) {
			entry = RemoteFile::Make(entry.path, lease, i);
		} else {
			entry.extended_info = make_shared_ptr<ExtendedOpenFileInfo>();
		}
		auto &options = entry.extended_info->options;
		options[OPTION_SIZE] = Value::UBIGINT(file.size);
		options[OPTION_ROWS] = Value::UBIGINT(file.rows);
		options[OPTION_INDEX] = Value::UBIGINT(i);
		options[OPTION_PLACE] = Value::UBIGINT(file.place);
		if (file.seq_min == file.seq_max) {
			options[OPTION_SEQ] = Value::UBIGINT(file.seq_min);
		}
		by_key.emplace_back(string(const_char_ptr_cast(file.key_min.data), file.key_min.len), std::move(entry));
	}
	std::sort(by_key.begin(), by_key.end(),
			  [&](const pair<string, OpenFileInfo> &a, const pair<string, OpenFileInfo> &b) {
				  return backwards ? b.first < a.first : a.first < b.first;
			  });
	candidates.reserve(by_key.size() + 1);
	if (memory_rows > 0) {
		// First: where that is enough, no file is looked at.
		OpenFileInfo entry(snapshot->Database().Path() + OVERLAY_NAME);
		entry.extended_info = make_shared_ptr<ExtendedOpenFileInfo>();
		entry.extended_info->options[OPTION_OVERLAY] = Value::BOOLEAN(true);
		entry.extended_info->options[OPTION_PLACE] = Value::UBIGINT(whole_file_count);
		candidates.push_back(std::move(entry));
	}
	for (auto &entry : by_key) {
		indices.push_back(SnapshotIndex(entry.second));
		candidates.push_back(std::move(entry.second));
	}
	listed = true;
}

bool SnapshotFileList::Advance() const {
	ListCandidates();
	while (next_candidate < candidates.size()) {
		auto at = next_candidate++;
		auto overlays = candidates.size() - indices.size();
		if (pruner && at >= overlays && !pruner->MayPass(indices, at - overlays)) {
			counters->files_skipped++;
			continue;
		}
		files.push_back(candidates[at]);
		return true;
	}
	return false;
}

bool SnapshotFileList::IsOverlay(const OpenFileInfo &file) {
	return FindOption(file, OPTION_OVERLAY) != nullptr;
}

idx_t SnapshotFileList::SnapshotIndex(const OpenFileInfo &file) {
	return NumberOf(file, OPTION_INDEX);
}

idx_t SnapshotFileList::Size(const OpenFileInfo &file) {
	return NumberOf(file, OPTION_SIZE);
}

idx_t SnapshotFileList::Rows(const OpenFileInfo &file) {
	return NumberOf(file, OPTION_ROWS);
}

optional_idx SnapshotFileList::CommonSeq(const OpenFileInfo &file) {
	auto seq = FindOption(file, OPTION_SEQ);
	return seq ? optional_idx(UBigIntValue::Get(*seq)) : optional_idx();
}

idx_t SnapshotFileList::Place(const OpenFileInfo &file) {
	return NumberOf(file, OPTION_PLACE);
}

vector<OpenFileInfo> SnapshotFileList::GetAllFiles() const {
	lock_guard<mutex> guard(lock);
	while (Advance()) {
	}
	return files;
}

vector<OpenFileInfo> SnapshotFileList::GetDisplayFileList(optional_idx max_files) const {
	// Those that were read: to ask for others would count as reading them.
	lock_guard<mutex> guard(lock);
	auto result = files;
	if (max_files.IsValid() && result.size() > max_files.GetIndex()) {
		result.resize(max_files.GetIndex());
	}
	for (auto &file : result) {
		file.path = RemoteFile::DisplayPath(file.path);
	}
	return result;
}

FileExpandResult SnapshotFileList::GetExpandResult() const {
	// For a single file the Parquet extension would limit the threads by what it read when it bound the file, which it
	// never did.
	return GetTotalFileCount() == 0 ? FileExpandResult::NO_FILES : FileExpandResult::MULTIPLE_FILES;
}

idx_t SnapshotFileList::GetTotalFileCount() const {
	lock_guard<mutex> guard(lock);
	ListCandidates();
	return files.size() + candidates.size() - next_candidate;
}

unique_ptr<NodeStatistics> SnapshotFileList::GetCardinality(ClientContext &) const {
	return make_uniq<NodeStatistics>(live_rows, live_rows);
}

unique_ptr<MultiFileList> SnapshotFileList::Copy() const {
	return make_uniq<SnapshotFileList>(*this, lease, bounds);
}

unique_ptr<SnapshotFileList> SnapshotFileList::Narrow(ClientContext &context, KeyBounds narrower,
													  const vector<column_t> &column_ids) const {
	if (narrower.IsOpen() || narrower == bounds) {
		return nullptr;
	}
	// Rows that the engine reads are in no file.
	bool leave_files = false;
	for (auto column : column_ids) {
		if (column == MultiFileReader::COLUMN_IDENTIFIER_FILENAME ||
			column == MultiFileReader::COLUMN_IDENTIFIER_FILE_INDEX ||
			column == MultiFileReader::COLUMN_IDENTIFIER_FILE_ROW_NUMBER || RowColumns::IsRowColumn(column)) {
			leave_files = true;
		}
	}
	auto part = SnapshotPart::Make(context, *whole_lease->Get(), narrower, leave_files);
	if (!part) {
		return nullptr;
	}
	return make_uniq<SnapshotFileList>(*this, whole_lease->Sublet(std::move(part)), std::move(narrower));
}

unique_ptr<MultiFileList> SnapshotFileList::ComplexFilterPushdown(ClientContext &context, const MultiFileOptions &,
																  MultiFilePushdownInfo &info,
																  vector<unique_ptr<Expression>> &filters) const {
	FilterCombiner combiner(context);
	for (auto &filter : filters) {
		combiner.AddFilter(filter->Copy());
	}
	vector<FilterPushdownResult> ignored;
	auto column_filters = combiner.GenerateTableScanFilters(info.column_indexes, ignored);
	auto &filter_map = column_filters.filters;
	return Narrow(context,
				  KeyBounds::FromFilters(lease->Get()->Table(),
										 [&](idx_t column) -> optional_ptr<const TableFilter> {
											 auto entry = filter_map.find(column);
											 return entry == filter_map.end() ? nullptr : entry->second.get();
										 }),
				  info.column_ids);
}

unique_ptr<MultiFileList> SnapshotFileList::DynamicFilterPushdown(ClientContext &context, const MultiFileOptions &,
																  const vector<string> &, const vector<LogicalType> &,
																  const vector<column_t> &column_ids,
																  TableFilterSet &filters) const {
	// Now that the query runs, the filters of joins are known. Those of top-N get their values while it does.
	auto &of = lease->Get()->Table();
	auto filter_of = [&](idx_t column) -> optional_ptr<const TableFilter> {
		for (auto &entry : filters.filters) {
			auto id = column_ids[entry.first];
			if (id == column || (KeyColumns::IsKeyColumn(id) && of.key[KeyColumns::KeyPosition(id)] == column)) {
				return entry.second.get();
			}
		}
		return nullptr;
	};
	auto result = Narrow(context, KeyBounds::FromFilters(of, filter_of), column_ids);
	if (!result) {
		result = make_uniq<SnapshotFileList>(*this, lease, bounds);
	}
	auto useful = make_shared_ptr<FilePruner>(context, result->lease->Get());
	for (idx_t column = 0; column < of.columns.size(); column++) {
		auto filter = filter_of(column);
		if (filter) {
			useful->Add(column, *filter);
		}
	}
	// DuckDB's reader looks at the row groups of a file by itself.
	if (useful->IsUseful() && result->file_count + (result->memory_rows > 0 ? 1 : 0) > 1) {
		result->pruner = std::move(useful);
	}
	return std::move(result);
}

OpenFileInfo SnapshotFileList::GetFile(idx_t i) const {
	lock_guard<mutex> guard(lock);
	while (files.size() <= i && Advance()) {
	}
	return i < files.size() ? files[i] : OpenFileInfo();
}

} // namespace duckdb
