#include "scan/scan_statistics.hpp"

#include "common/meru_status.hpp"
#include "duckdb/storage/statistics/numeric_stats.hpp"
#include "duckdb/storage/storage_index.hpp"

namespace duckdb {

namespace {

//! The engine's 64 bits as a value of a column's type; NULL for types that have no bounds.
Value BoundValue(const LogicalType &type, uint64_t bits) {
	Value result;
	switch (type.InternalType()) {
	case PhysicalType::BOOL:
		result = Value::BOOLEAN(bits != 0);
		break;
	case PhysicalType::INT8:
		result = Value::TINYINT(static_cast<int8_t>(bits));
		break;
	case PhysicalType::INT16:
		result = Value::SMALLINT(static_cast<int16_t>(bits));
		break;
	case PhysicalType::INT32:
		result = Value::INTEGER(static_cast<int32_t>(bits));
		break;
	case PhysicalType::INT64:
		result = Value::BIGINT(static_cast<int64_t>(bits));
		break;
	case PhysicalType::UINT8:
		result = Value::UTINYINT(static_cast<uint8_t>(bits));
		break;
	case PhysicalType::UINT16:
		result = Value::USMALLINT(static_cast<uint16_t>(bits));
		break;
	case PhysicalType::UINT32:
		result = Value::UINTEGER(static_cast<uint32_t>(bits));
		break;
	case PhysicalType::UINT64:
		result = Value::UBIGINT(bits);
		break;
	case PhysicalType::FLOAT: {
		auto low = static_cast<uint32_t>(bits);
		result = Value::FLOAT(Load<float>(const_data_ptr_cast(&low)));
		break;
	}
	case PhysicalType::DOUBLE:
		result = Value::DOUBLE(Load<double>(const_data_ptr_cast(&bits)));
		break;
	default:
		return Value(type);
	}
	result.Reinterpret(type);
	return result;
}

unique_ptr<BaseStatistics> Statistics(const MeruSnapshotRef &snapshot, idx_t column, bool exact) {
	auto &type = snapshot.Table().columns[column].type;
	switch (type.InternalType()) {
	case PhysicalType::STRUCT:
	case PhysicalType::LIST:
	case PhysicalType::ARRAY:
		return nullptr; // nothing is known of the values inside
	default:
		break;
	}
	MeruColumnStats stats;
	MeruCall([&](char **err) { return meru_snapshot_column_stats(snapshot.Get(), column, exact, &stats, err); });
	return ScanStatistics::From(stats, type).ToUnique();
}

//! The table as what DuckDB calls a row group.
class WholeTable : public PartitionRowGroup {
  public:
	explicit WholeTable(shared_ptr<MeruSnapshotRef> snapshot) : snapshot(std::move(snapshot)) {
	}

	unique_ptr<BaseStatistics> GetColumnStatistics(const StorageIndex &storage_index) override {
		if (storage_index.HasChildren() || storage_index.GetPrimaryIndex() >= snapshot->Table().columns.size()) {
			return nullptr;
		}
		return Statistics(*snapshot, storage_index.GetPrimaryIndex(), true);
	}
	bool MinMaxIsExact(const BaseStatistics &stats, const StorageIndex &) override {
		return stats.GetStatsType() == StatisticsType::NUMERIC_STATS && NumericStats::HasMinMax(stats);
	}

  private:
	shared_ptr<MeruSnapshotRef> snapshot;
};

} // namespace

BaseStatistics ScanStatistics::From(const MeruColumnStats &stats, const LogicalType &type) {
	auto result = BaseStatistics::CreateUnknown(type);
	if (!stats.has_null) {
		result.Set(StatsInfo::CANNOT_HAVE_NULL_VALUES);
	}
	if (stats.distinct > 0) {
		result.SetDistinctCount(stats.distinct);
	}
	if (stats.has_bounds && type.id() != LogicalTypeId::ENUM &&
		BaseStatistics::GetStatsType(type) == StatisticsType::NUMERIC_STATS) {
		auto min = BoundValue(type, stats.min);
		auto max = BoundValue(type, stats.max);
		if (!min.IsNull() && !max.IsNull()) {
			NumericStats::SetMin(result, min);
			NumericStats::SetMax(result, max);
		}
	}
	return result;
}

unique_ptr<BaseStatistics> ScanStatistics::OfColumn(const SnapshotFileList &files, idx_t column) {
	auto snapshot = files.WholeLease().Get();
	if (files.IsLookedUp() || column >= snapshot->Table().columns.size()) {
		return nullptr; // a few rows: not worth a look
	}
	return Statistics(*snapshot, column, false);
}

vector<PartitionStatistics> ScanStatistics::Partitions(const SnapshotFileList &files) {
	if (files.IsNarrowed()) {
		return {};
	}
	auto snapshot = files.Lease().Get();
	PartitionStatistics statistics;
	statistics.row_start = 0;
	uint64_t rows = 0;
	MeruCall([&](char **err) { return meru_snapshot_count(snapshot->Get(), &rows, err); });
	statistics.count = rows;
	statistics.count_type = CountType::COUNT_EXACT;
	statistics.partition_row_group = make_shared_ptr<WholeTable>(std::move(snapshot));
	return {statistics};
}

} // namespace duckdb
