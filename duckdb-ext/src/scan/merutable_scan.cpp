#include "scan/merutable_scan.hpp"

#include "duckdb/catalog/catalog.hpp"
#include "duckdb/catalog/catalog_entry/table_catalog_entry.hpp"
#include "duckdb/catalog/catalog_entry/table_function_catalog_entry.hpp"
#include "duckdb/common/exception/binder_exception.hpp"
#include "duckdb/common/multi_file/multi_file_reader.hpp"
#include "duckdb/common/serializer/deserializer.hpp"
#include "duckdb/common/serializer/serializer.hpp"
#include "duckdb/function/partition_stats.hpp"
#include "duckdb/main/extension/extension_loader.hpp"
#include "duckdb/main/extension_helper.hpp"
#include "duckdb/parser/tableref/table_function_ref.hpp"
#include "scan/key_columns.hpp"
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
	KeyColumns::AddTo(FileList(bind_data).Lease().Get()->Table(), result);
	bind_data.virtual_columns = result;
	return result;
}

BindInfo ScanBindInfo(const optional_ptr<FunctionData> bind_data_p) {
	auto table = FileList(bind_data_p->Cast<MultiFileBindData>()).Table();
	return table ? BindInfo(*table) : BindInfo(ScanType::EXTERNAL);
}

//! Where no rows are in memory, their number is known, so that COUNT(*) need not read anything.
vector<PartitionStatistics> ScanPartitionStats(ClientContext &, GetPartitionStatsInput &input) {
	auto &files = FileList(input.bind_data->Cast<MultiFileBindData>());
	if (files.MemoryRows() > 0 || files.IsNarrowed()) {
		return {};
	}
	PartitionStatistics statistics;
	statistics.row_start = 0;
	statistics.count = files.LiveRows();
	statistics.count_type = CountType::COUNT_EXACT;
	return {statistics};
}

InsertionOrderPreservingMap<string> ScanToString(TableFunctionToStringInput &input) {
	auto &files = FileList(input.bind_data->Cast<MultiFileBindData>());
	InsertionOrderPreservingMap<string> result;
	if (files.Table()) {
		result["Table"] = files.Table()->name;
	}
	auto in_memory = files.MemoryRows();
	result["Version"] = std::to_string(files.Version());
	auto file_count = files.GetTotalFileCount() - (in_memory > 0 ? 1 : 0);
	result["Files"] = std::to_string(file_count);
	if (files.IsNarrowed()) {
		result["Files"] += " of " + std::to_string(files.WholeFileCount());
	}
	result["Changes In Memory"] = std::to_string(in_memory);
	return result;
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
	result.statistics = nullptr;
	result.statistics_extended = nullptr;
	result.serialize = ScanSerialize;
	result.deserialize = ScanDeserialize;
	result.set_scan_order = nullptr;
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
			loader.RegisterFunction(MakeScanFunction(function));
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
