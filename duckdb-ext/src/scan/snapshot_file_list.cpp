#include "scan/snapshot_file_list.hpp"

#include "common/arrow_rows.hpp"
#include "duckdb/catalog/catalog_entry/table_catalog_entry.hpp"
#include "duckdb/common/arrow/arrow_wrapper.hpp"
#include "duckdb/common/multi_file/multi_file_reader.hpp"
#include "duckdb/optimizer/filter_combiner.hpp"
#include "scan/key_bounds.hpp"
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

//! One end of a range as an Arrow array of one row, for the engine to take. None where the end is open.
class BoundArray {
  public:
	BoundArray(ClientContext &context, const MeruTable &table, const vector<Value> &values) {
		if (values.empty()) {
			return;
		}
		vector<idx_t> columns;
		vector<LogicalType> types;
		for (idx_t i = 0; i < values.size(); i++) {
			columns.push_back(table.key[i]);
			types.push_back(table.columns[table.key[i]].type);
		}
		DataChunk row;
		row.Initialize(context, types, 1);
		for (idx_t i = 0; i < values.size(); i++) {
			row.SetValue(i, 0, values[i]);
		}
		row.SetCardinality(1);
		buffer = make_uniq<ArrowRowBuffer>(context, table, std::move(columns));
		auto keep = [&](ArrowArray &rows, const ArrowSchema &rows_schema) {
			array.arrow_array = rows;
			rows.release = nullptr;
			schema = &rows_schema;
		};
		buffer->Append(row, keep);
		buffer->Flush(keep);
	}

	ArrowArray *Array() {
		return buffer ? &array.arrow_array : nullptr;
	}
	const ArrowSchema *Schema() const {
		return schema;
	}

  private:
	unique_ptr<ArrowRowBuffer> buffer;
	ArrowArrayWrapper array;
	const ArrowSchema *schema = nullptr;
};

//! The rows of a range. Null where an end is no value of a key, being too long for one, say: a filter may have it.
shared_ptr<MeruSnapshotRef> Part(ClientContext &context, const MeruSnapshotRef &snapshot, const KeyBounds &bounds) {
	BoundArray lower(context, snapshot.Table(), bounds.lower);
	BoundArray upper(context, snapshot.Table(), bounds.upper);
	MeruSnapshot *part = nullptr;
	char *message = nullptr;
	auto status = meru_snapshot_part(snapshot.Get(), lower.Array(), lower.Schema(), bounds.lower_exclusive,
									 upper.Array(), upper.Schema(), bounds.upper_exclusive, &part, &message);
	if (status == MeruStatus_ErrInvalidArg) {
		meru_free_string(message);
		return nullptr;
	}
	if (status != MeruStatus_Ok) {
		ThrowMeruError(status, message);
	}
	return make_shared_ptr<MeruSnapshotRef>(snapshot.SharedDatabase(), part);
}

} // namespace

SnapshotFileList::SnapshotFileList(shared_ptr<MeruSnapshotLease> lease_p, shared_ptr<TableCatalogEntry> table_p,
								   optional_ptr<const SnapshotFileList> whole)
	: lease(std::move(lease_p)), whole_lease(whole ? whole->whole_lease : lease), table(std::move(table_p)) {
	auto &info = lease->Get()->Info();
	live_rows = info.live_rows;
	memory_rows = info.memory_rows;
	version = info.version;
	whole_file_count = whole ? whole->whole_file_count : info.file_count;
}

const vector<OpenFileInfo> &SnapshotFileList::Expand() const {
	lock_guard<mutex> guard(expand_lock);
	if (expanded) {
		return files;
	}
	files.clear();
	auto snapshot = lease->Get();
	auto &info = snapshot->Info();
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
	expanded = true;
	return files;
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
	return Expand();
}

FileExpandResult SnapshotFileList::GetExpandResult() const {
	// For a single file the Parquet extension would limit the threads by what it read when it bound the file, which it
	// never did.
	return Expand().empty() ? FileExpandResult::NO_FILES : FileExpandResult::MULTIPLE_FILES;
}

idx_t SnapshotFileList::GetTotalFileCount() const {
	return Expand().size();
}

unique_ptr<NodeStatistics> SnapshotFileList::GetCardinality(ClientContext &) const {
	return make_uniq<NodeStatistics>(live_rows, live_rows);
}

unique_ptr<MultiFileList> SnapshotFileList::Copy() const {
	return make_uniq<SnapshotFileList>(lease, table, this);
}

unique_ptr<MultiFileList> SnapshotFileList::ComplexFilterPushdown(ClientContext &context, const MultiFileOptions &,
																  MultiFilePushdownInfo &info,
																  vector<unique_ptr<Expression>> &filters) const {
	for (auto column : info.column_ids) {
		if (column == MultiFileReader::COLUMN_IDENTIFIER_FILENAME ||
			column == MultiFileReader::COLUMN_IDENTIFIER_FILE_INDEX ||
			column == MultiFileReader::COLUMN_IDENTIFIER_FILE_ROW_NUMBER) {
			// Rows that the engine reads are in no file.
			return nullptr;
		}
	}
	FilterCombiner combiner(context);
	for (auto &filter : filters) {
		combiner.AddFilter(filter->Copy());
	}
	vector<FilterPushdownResult> ignored;
	auto column_filters = combiner.GenerateTableScanFilters(info.column_indexes, ignored);
	auto snapshot = lease->Get();
	auto bounds = KeyBounds::FromFilters(snapshot->Table(), column_filters);
	if (bounds.IsOpen()) {
		return nullptr;
	}
	auto part = Part(context, *snapshot, bounds);
	if (!part) {
		return nullptr;
	}
	return make_uniq<SnapshotFileList>(lease->Sublet(std::move(part)), table, this);
}

unique_ptr<MultiFileList> SnapshotFileList::DynamicFilterPushdown(ClientContext &, const MultiFileOptions &,
																  const vector<string> &, const vector<LogicalType> &,
																  const vector<column_t> &, TableFilterSet &) const {
	return nullptr;
}

OpenFileInfo SnapshotFileList::GetFile(idx_t i) const {
	auto &all = Expand();
	return i < all.size() ? all[i] : OpenFileInfo();
}

} // namespace duckdb
