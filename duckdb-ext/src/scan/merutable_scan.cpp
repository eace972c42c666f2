#include "scan/merutable_scan.hpp"

#include "duckdb/catalog/catalog.hpp"
#include "duckdb/catalog/catalog_entry/table_catalog_entry.hpp"
#include "duckdb/catalog/catalog_entry/table_function_catalog_entry.hpp"
#include "duckdb/common/exception/binder_exception.hpp"
#include "duckdb/common/multi_file/multi_file_function.hpp"
#include "duckdb/common/serializer/deserializer.hpp"
#include "duckdb/common/serializer/serializer.hpp"
#include "duckdb/function/partition_stats.hpp"
#include "duckdb/main/extension/extension_loader.hpp"
#include "duckdb/main/extension_helper.hpp"
#include "duckdb/parser/tableref/table_function_ref.hpp"
#include "duckdb/storage/table/row_group_reorderer.hpp"
#include "functions/function_arguments.hpp"
#include "scan/key_columns.hpp"
#include "scan/row_columns.hpp"
#include "scan/scan_statistics.hpp"
#include "common/statement_snapshots.hpp"
#include "scan/snapshot_reader.hpp"

namespace duckdb {

namespace {

SnapshotFileList &FileList(const MultiFileBindData &bind_data) {
	return bind_data.file_list->Cast<SnapshotFileList>();
}

//! Named parameters, and the unit of AT that each stands for. SQL reserves the word timestamp: as a parameter's name it
//! needs quotes, so it has another one.
constexpr const char *VERSION_PARAMETERS[][2] = {
	{"version", "version"}, {"as_of", "timestamp"}, {"timestamp", "timestamp"}};

//! parquet_scan's own bind, for a snapshot that is known already.
unique_ptr<FunctionData> BindSnapshot(ClientContext &context, TableFunction &function,
									  shared_ptr<MeruSnapshotLease> lease, shared_ptr<TableCatalogEntry> table,
									  vector<LogicalType> &return_types, vector<string> &names) {
	auto info = make_shared_ptr<ScanFunctionInfo>(function.function_info->Cast<ScanFunctionInfo>());
	info->lease = std::move(lease);
	info->table = std::move(table);
	function.function_info = std::move(info);

	vector<Value> inputs{Value("")};
	named_parameter_map_t named_parameters;
	vector<LogicalType> input_types;
	vector<string> input_names;
	TableFunctionRef reference;
	TableFunctionBindInput input(inputs, named_parameters, input_types, input_names, function.function_info, nullptr,
								 function, reference);
	return function.function_info->Cast<ScanFunctionInfo>().parquet_bind(context, input, return_types, names);
}

//! The older state that the named parameters ask for, if they do.
unique_ptr<MeruTableVersion> AskedVersion(ClientContext &context, const named_parameter_map_t &parameters) {
	unique_ptr<MeruTableVersion> result;
	for (auto &parameter : VERSION_PARAMETERS) {
		auto found = parameters.find(parameter[0]);
		if (found == parameters.end()) {
			continue;
		}
		if (result) {
			throw BinderException("%s: version, as_of and timestamp exclude each other", MerutableScan::NAME);
		}
		auto what = string(MerutableScan::NAME) + ": " + parameter[0];
		result = make_uniq<MeruTableVersion>(context, what, parameter[1], found->second);
	}
	return result;
}

unique_ptr<FunctionData> ScanBind(ClientContext &context, TableFunctionBindInput &input,
								  vector<LogicalType> &return_types, vector<string> &names) {
	if (input.inputs[0].IsNull()) {
		throw BinderException("%s: the path is NULL", MerutableScan::NAME);
	}
	auto version = AskedVersion(context, input.named_parameters);
	auto table = StatementSnapshots::TableParameter(MerutableScan::NAME, input.named_parameters);
	if (!version && table.empty()) {
		return input.info->Cast<ScanFunctionInfo>().parquet_bind(context, input, return_types, names);
	}
	auto function = input.table_function;
	auto lease = StatementSnapshots::Get(context, StringValue::Get(input.inputs[0]), table, version.get());
	return BindSnapshot(context, function, std::move(lease), nullptr, return_types, names);
}

virtual_column_map_t ScanVirtualColumns(ClientContext &context, optional_ptr<FunctionData> bind_data_p) {
	auto &bind_data = bind_data_p->Cast<MultiFileBindData>();
	// What DuckDB's scans of Parquet have, and the key for DELETE and UPDATE.
	virtual_column_map_t result;
	MultiFileReader::GetVirtualColumns(context, bind_data.reader_bind, result);
	result.insert(make_pair(MultiFileReader::COLUMN_IDENTIFIER_FILE_ROW_NUMBER,
							TableColumn("file_row_number", LogicalType::BIGINT)));
	RowColumns::AddTo(result);
	KeyColumns::AddTo(FileList(bind_data).Lease().Get()->Table(), result);
	bind_data.virtual_columns = result;
	return result;
}

//! Those on columns that are made after the file was read are applied above the scan.
bool ScanSupportsFilter(const FunctionData &, idx_t column) {
	return !RowColumns::IsRowColumn(column);
}

BindInfo ScanBindInfo(const optional_ptr<FunctionData> bind_data_p) {
	auto table = FileList(bind_data_p->Cast<MultiFileBindData>()).Table();
	return table ? BindInfo(*table) : BindInfo(ScanType::EXTERNAL);
}

vector<PartitionStatistics> ScanPartitionStats(ClientContext &, GetPartitionStatsInput &input) {
	return ScanStatistics::Partitions(FileList(input.bind_data->Cast<MultiFileBindData>()));
}

unique_ptr<BaseStatistics> ScanColumnStatistics(ClientContext &, const FunctionData *bind_data, column_t column) {
	if (IsVirtualColumn(column)) {
		return nullptr;
	}
	return ScanStatistics::OfColumn(FileList(bind_data->Cast<MultiFileBindData>()), column);
}

//! Adds what the thread that ends its scan counted. Row groups are the Parquet extension's, and so are their counters.
void CountRowGroups(TableFunctionDynamicToStringInput &input, ScanCounters &counters) {
	auto &info = input.table_function.function_info->Cast<ScanFunctionInfo>();
	if (!info.parquet_metrics) {
		return;
	}
	auto &lstate = input.local_state->Cast<MultiFileLocalState>();
	profiler_settings_t wanted{MetricType::OPERATOR_ROW_GROUPS_SCANNED, MetricType::OPERATOR_TOTAL_ROW_GROUPS_TO_SCAN};
	profiler_metrics_t metrics;
	info.parquet_metrics(lstate.executor.GetContext(), input.bind_data.get(), *input.global_state, *input.local_state,
						 wanted, metrics);
	auto value = [&](MetricType type) -> idx_t {
		auto entry = metrics.find(type);
		return entry == metrics.end() ? 0 : entry->second.GetValue<uint64_t>();
	};
	// The first is the thread's own, the second that of all.
	counters.row_groups_read += value(MetricType::OPERATOR_ROW_GROUPS_SCANNED);
	counters.row_groups = value(MetricType::OPERATOR_TOTAL_ROW_GROUPS_TO_SCAN);
}

InsertionOrderPreservingMap<string> ScanToString(TableFunctionToStringInput &input) {
	auto &files = FileList(input.bind_data->Cast<MultiFileBindData>());
	InsertionOrderPreservingMap<string> result;
	if (files.Table()) {
		result["Table"] = files.Table()->name;
	}
	auto in_memory = files.MemoryRows();
	result["Version"] = std::to_string(files.Version());
	result["Files"] = std::to_string(files.FileCount());
	if (files.IsNarrowed()) {
		result["Files"] += " of " + std::to_string(files.WholeFileCount());
	}
	result[files.IsLookedUp() ? "Rows To Look Up" : "Changes In Memory"] = std::to_string(in_memory);
	return result;
}

//! What the scan did, once it did.
InsertionOrderPreservingMap<string> ScanDynamicToString(TableFunctionDynamicToStringInput &input) {
	auto &gstate = input.global_state->Cast<MultiFileGlobalState>();
	auto &files = gstate.file_list.Cast<SnapshotFileList>();
	auto &counters = *files.Counters();
	if (input.local_state) {
		CountRowGroups(input, counters);
	}
	InsertionOrderPreservingMap<string> result;
	auto read = counters.files_read.load();
	result["Files Read"] = std::to_string(read) + " of " + std::to_string(files.WholeFileCount());
	result["Files Skipped"] = std::to_string(files.WholeFileCount() - MinValue(read, files.WholeFileCount()));
	result["Bytes of Files"] = std::to_string(counters.bytes.load());
	auto row_groups = counters.row_groups_read.load();
	result["Row Groups Read"] = std::to_string(row_groups);
	result["Row Groups Skipped"] = std::to_string(MaxValue(counters.row_groups.load(), row_groups) - row_groups);
	result[files.IsLookedUp() ? "Rows Looked Up" : "Rows From Memory"] = std::to_string(counters.memory_rows.load());
	return result;
}

//! For ORDER BY with LIMIT: the files that come first in that order are read first, so that top-N leaves the others
//! out.
void ScanSetOrder(unique_ptr<RowGroupOrderOptions> order, optional_ptr<FunctionData> bind_data) {
	auto &files = FileList(bind_data->Cast<MultiFileBindData>());
	auto first_of_key = files.Lease().Get()->Table().key[0];
	if (order->order_type == OrderType::DESCENDING && order->column_idx.GetPrimaryIndex() == first_of_key) {
		files.ReadBackwards();
	}
}

//! Plans with merutable scans are not stored. But DuckDB takes two parts of a query for the same, and runs one of them,
//! if they serialize to the same bytes: these must name what is scanned.
void ScanSerialize(Serializer &serializer, const optional_ptr<FunctionData> bind_data_p, const TableFunction &) {
	auto &lease = FileList(bind_data_p->Cast<MultiFileBindData>()).WholeLease();
	auto snapshot = lease.Get();
	serializer.WriteProperty(100, "path", snapshot->Database().Path());
	serializer.WriteProperty(101, "seq", snapshot->Info().seq);
	serializer.WriteProperty(102, "lease", reinterpret_cast<uint64_t>(&lease));
}

unique_ptr<FunctionData> ScanDeserialize(Deserializer &, TableFunction &) {
	throw NotImplementedException("A stored plan with a merutable scan cannot be read");
}

TableFunction MakeScanFunction(const TableFunction &parquet_scan) {
	auto result = parquet_scan;
	auto info = make_shared_ptr<ScanFunctionInfo>();
	info->parquet_bind = parquet_scan.bind;
	info->parquet_metrics = parquet_scan.get_metrics;
	result.name = MerutableScan::NAME;
	result.named_parameters.clear();
	StatementSnapshots::AddTableParameter(result.named_parameters);
	// Of any type, so that a value that is no version is refused by us, with its name.
	for (auto &parameter : VERSION_PARAMETERS) {
		result.named_parameters[parameter[0]] = LogicalType::ANY;
	}
	result.function_info = std::move(info);
	result.bind = ScanBind;
	result.get_multi_file_reader = SnapshotMultiFileReader::Create;
	result.get_virtual_columns = ScanVirtualColumns;
	result.get_bind_info = ScanBindInfo;
	result.get_partition_stats = ScanPartitionStats;
	result.to_string = ScanToString;
	result.supports_pushdown_type = ScanSupportsFilter;
	result.statistics = ScanColumnStatistics;
	result.statistics_extended = nullptr;
	result.serialize = ScanSerialize;
	result.deserialize = ScanDeserialize;
	result.set_scan_order = ScanSetOrder;
	result.dynamic_to_string = ScanDynamicToString;
	// A second look at rows by file and position would need positions that rows in memory do not keep.
	result.late_materialization = false;
	result.get_row_id_columns = nullptr;
	return result;
}

} // namespace

void MerutableScan::Register(ExtensionLoader &loader) {
	ExtensionHelper::AutoLoadExtension(loader.GetDatabaseInstance(), "parquet");
	auto &parquet_scan = loader.GetTableFunction("parquet_scan");
	for (auto &function : parquet_scan.functions.functions) {
		if (function.arguments[0] == LogicalType::VARCHAR) {
			RegisterDescribed(
				loader, MakeScanFunction(function),
				{{"path"},
				 "The merutable table in a directory, of today or as of an older version or time",
				 {"FROM merutable_scan('path/to/m')", "FROM merutable_scan('path/to/m', version := 17)"}});
			return;
		}
	}
	throw InvalidInputException("parquet_scan has no form that takes a path");
}

TableFunction MerutableScan::Bind(ClientContext &context, shared_ptr<MeruSnapshotLease> lease,
								  shared_ptr<TableCatalogEntry> table, unique_ptr<FunctionData> &bind_data) {
	auto &entry =
		Catalog::GetSystemCatalog(context).GetEntry(context, CatalogType::TABLE_FUNCTION_ENTRY, DEFAULT_SCHEMA, NAME);
	auto function = entry.Cast<TableFunctionCatalogEntry>().functions.GetFunctionByOffset(0);
	vector<LogicalType> return_types;
	vector<string> names;
	bind_data = BindSnapshot(context, function, std::move(lease), std::move(table), return_types, names);
	return function;
}

} // namespace duckdb
