#include "scan/snapshot_reader.hpp"

#include "common/statement_snapshots.hpp"
#include "duckdb/common/multi_file/multi_file_function.hpp"
#include "duckdb/parser/expression/constant_expression.hpp"
#include "parquet_multi_file_info.hpp"
#include "scan/column_conversion.hpp"
#include "scan/key_columns.hpp"
#include "scan/overlay_reader.hpp"
#include "scan/position_delete_filter.hpp"

namespace duckdb {

unique_ptr<MultiFileReader> SnapshotMultiFileReader::Create(const TableFunction &function) {
	return make_uniq<SnapshotMultiFileReader>(
		shared_ptr_cast<TableFunctionInfo, ScanFunctionInfo>(function.function_info));
}

shared_ptr<MultiFileList> SnapshotMultiFileReader::CreateFileList(ClientContext &context, const vector<string> &paths,
																  const FileGlobInput &) {
	auto lease = info->lease ? info->lease : StatementSnapshots::Get(context, paths[0]);
	return make_shared_ptr<SnapshotFileList>(std::move(lease), info->table);
}

bool SnapshotMultiFileReader::Bind(MultiFileOptions &, MultiFileList &files, vector<LogicalType> &return_types,
								   vector<string> &names, MultiFileReaderBindData &bind_data) {
	auto snapshot = files.Cast<SnapshotFileList>().Lease().Get();
	for (auto &column : snapshot->Table().columns) {
		auto definition = ColumnConversion::Define(column, column.type);
		// What a file reads as that was written before the column existed.
		definition.default_expression = make_uniq<ConstantExpression>(Value(column.type));
		bind_data.schema.push_back(std::move(definition));
		return_types.push_back(column.type);
		names.push_back(column.name);
	}
	bind_data.mapping = MultiFileColumnMappingMode::BY_FIELD_ID;
	return true;
}

shared_ptr<BaseFileReader> SnapshotMultiFileReader::CreateReader(ClientContext &context, GlobalTableFunctionState &,
																 const OpenFileInfo &file, idx_t,
																 const MultiFileBindData &bind_data) {
	if (SnapshotFileList::IsOverlay(file)) {
		auto &files = bind_data.file_list->Cast<SnapshotFileList>();
		return make_shared_ptr<OverlayReader>(file, files.Lease().Get());
	}
	// Not the options of the bind: settings such as binary_as_string are for other people's files.
	ParquetFileReaderOptions options{ParquetOptions()};
	return bind_data.interface->CreateReader(context, file, options, bind_data.file_options);
}

ReaderInitializeType SnapshotMultiFileReader::InitializeReader(MultiFileReaderData &reader_data,
															   const MultiFileBindData &bind_data,
															   const vector<MultiFileColumnDefinition> &global_columns,
															   const vector<ColumnIndex> &global_column_ids,
															   optional_ptr<TableFilterSet> table_filters,
															   ClientContext &context, MultiFileGlobalState &gstate) {
	auto &reader = *reader_data.reader;
	auto snapshot = bind_data.file_list->Cast<SnapshotFileList>().Lease().Get();
	if (SnapshotFileList::HasDeletes(reader.file)) {
		reader.deletion_filter =
			make_uniq<PositionDeleteFilter>(snapshot, SnapshotFileList::SnapshotIndex(reader.file));
	}

	DistinctColumns distinct(snapshot->Table(), global_column_ids);
	ColumnConversion conversion(reader, global_columns, distinct.columns, table_filters, distinct.place);
	FinalizeBind(reader_data, bind_data.file_options, bind_data.reader_bind, global_columns, distinct.columns, context,
				 gstate.multi_file_reader_state.get());
	auto result = CreateMapping(context, reader_data, global_columns, distinct.columns, conversion.DirectFilters(),
								gstate.file_list, bind_data.reader_bind, bind_data.virtual_columns);
	if (result == ReaderInitializeType::SKIP_READING_FILE) {
		return result;
	}
	conversion.Apply(reader_data);

	vector<unique_ptr<Expression>> expressions;
	for (auto place : distinct.place) {
		expressions.push_back(reader_data.expressions[place]->Copy());
	}
	reader_data.expressions = std::move(expressions);
	return result;
}

unique_ptr<MultiFileReader> SnapshotMultiFileReader::Copy() const {
	auto result = make_uniq<SnapshotMultiFileReader>(info);
	result->function_name = function_name;
	return std::move(result);
}

} // namespace duckdb
