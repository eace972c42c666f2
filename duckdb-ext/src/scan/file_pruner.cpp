#include "scan/file_pruner.hpp"

#include "scan/scan_statistics.hpp"
#include "scan/snapshot_part.hpp"

#include <algorithm>

namespace duckdb {

namespace {

//! How many files the engine is asked of at a time: it opens those that it does not know beside each other. Few, as a
//! LIMIT may end the scan with the first one.
constexpr idx_t FILES_AT_A_TIME = 16;

//! Whether files have bounds of a column's values that DuckDB's filters can be checked against.
bool HasBounds(const LogicalType &type) {
	return type.id() != LogicalTypeId::ENUM && BaseStatistics::GetStatsType(type) == StatisticsType::NUMERIC_STATS &&
		   GetTypeIdSize(type.InternalType()) <= 8;
}

} // namespace

FilePruner::FilePruner(ClientContext &context, shared_ptr<MeruSnapshotRef> snapshot)
	: context(context), snapshot(std::move(snapshot)) {
}

void FilePruner::Add(idx_t column, const TableFilter &filter) {
	auto &table = snapshot->Table();
	if (std::find(table.key.begin(), table.key.end(), column) != table.key.end()) {
		key_changes = key_changes || KeyBounds::IsDynamic(filter);
		keys.emplace_back(column, filter.Copy());
	}
	// Keys tell as much of the key's first column.
	if (column != table.key[0] && HasBounds(table.columns[column].type)) {
		values.push_back(ValueFilter{column, filter.Copy(), 0, {}});
	}
}

KeyBounds FilePruner::Bounds() const {
	return KeyBounds::FromFilters(snapshot->Table(), [&](idx_t column) -> optional_ptr<const TableFilter> {
		for (auto &entry : keys) {
			if (entry.first == column) {
				return entry.second.get();
			}
		}
		return nullptr;
	});
}

bool FilePruner::MeetsKeys(idx_t file) const {
	if (!key_changes) {
		return true; // the snapshot is a part by them
	}
	auto now = Bounds();
	return now.is_prefixes || now.IsOpen() || SnapshotPart::FileMeets(context, *snapshot, file, now);
}

bool FilePruner::MayPass(ValueFilter &value, const vector<idx_t> &files, idx_t at) const {
	if (at < value.first || at >= value.first + value.stats.size()) {
		vector<uintptr_t> asked(files.begin() + NumericCast<int64_t>(at),
								files.begin() + NumericCast<int64_t>(MinValue(at + FILES_AT_A_TIME, files.size())));
		value.first = at;
		value.stats.resize(asked.size());
		MeruCall([&](char **err) {
			return meru_snapshot_file_stats(snapshot->Get(), value.column, asked.data(), asked.size(),
											value.stats.data(), err);
		});
	}
	auto stats = ScanStatistics::From(value.stats[at - value.first], snapshot->Table().columns[value.column].type);
	return value.filter->CheckStatistics(stats) != FilterPropagateResult::FILTER_ALWAYS_FALSE;
}

bool FilePruner::MayPass(const vector<idx_t> &files, idx_t at) {
	if (!MeetsKeys(files[at])) {
		return false;
	}
	for (auto &value : values) {
		if (!MayPass(value, files, at)) {
			return false;
		}
	}
	return true;
}

} // namespace duckdb
