#include "scan/snapshot_reader.hpp"

#include "common/key_arrow.hpp"
#include "common/remote_files.hpp"
#include "common/statement_snapshots.hpp"
#include "duckdb/common/multi_file/multi_file_function.hpp"
#include "duckdb/parser/expression/constant_expression.hpp"
#include "parquet_multi_file_info.hpp"
#include "scan/column_conversion.hpp"
#include "scan/key_columns.hpp"
#include "scan/overlay_reader.hpp"
#include "duckdb/planner/expression/bound_constant_expression.hpp"
#include "duckdb/planner/expression/bound_reference_expression.hpp"
#include "scan/position_delete_filter.hpp"
#include "scan/row_columns.hpp"

namespace duckdb {

namespace {

//! In the column filename, a file in an object store has the name that the store gives it.
void ShowRemoteNames(MultiFileReaderData &reader_data, const vector<ColumnIndex> &columns) {
	for (auto &constant : reader_data.constant_map) {
		if (columns[constant.column_idx].GetPrimaryIndex() == MultiFileReader::COLUMN_IDENTIFIER_FILENAME) {
			constant.value = Value(RemoteFile::DisplayPath(reader_data.reader->GetFileName()));
		}
	}
}

} // namespace

SnapshotMultiFileReader::SnapshotMultiFileReader(shared_ptr<ScanFunctionInfo> info_p) : info(std::move(info_p)) {
	seq_column = make_uniq<MultiFileColumnDefinition>(RowColumns::SEQ_NAME, LogicalType::BIGINT);
	seq_column->identifier = Value::INTEGER(RowColumns::SEQ_FIELD_ID);
	seq_column->default_expression = make_uniq<ConstantExpression>(Value(LogicalType::BIGINT));
}

unique_ptr<MultiFileReader> SnapshotMultiFileReader::Create(const TableFunction &function) {
	return make_uniq<SnapshotMultiFileReader>(
		shared_ptr_cast<TableFunctionInfo, ScanFunctionInfo>(function.function_info));
}

shared_ptr<MultiFileList> SnapshotMultiFileReader::CreateFileList(ClientContext &context, const vector<string> &paths,
																  const FileGlobInput &) {
	auto lease = info->lease ? info->lease : StatementSnapshots::Get(context, paths[0]);
	initial_defaults = InitialDefaults(context, *lease->Get());
	return make_shared_ptr<SnapshotFileList>(std::move(lease), info->table);
}

bool SnapshotMultiFileReader::Bind(MultiFileOptions &, MultiFileList &files, vector<LogicalType> &return_types,
								   vector<string> &names, MultiFileReaderBindData &bind_data) {
	auto snapshot = files.Cast<SnapshotFileList>().Lease().Get();
	for (idx_t i = 0; i < snapshot->Table().columns.size(); i++) {
		auto &column = snapshot->Table().columns[i];
		auto definition = ColumnConversion::Define(column, column.type);
		// What a file reads as that was written before the column existed.
		definition.default_expression = make_uniq<ConstantExpression>(initial_defaults.at(i));
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
		// Which snapshot it is of, InitializeReader is told.
		auto &files = bind_data.file_list->Cast<SnapshotFileList>();
		return make_shared_ptr<OverlayReader>(file, files.WholeLease().Get());
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
	// Not the list of the bind: filters that came with the execution may have narrowed it.
	auto &list = gstate.file_list.Cast<SnapshotFileList>();
	auto snapshot = list.Lease().Get();
	if (!SnapshotFileList::IsOverlay(reader.file)) {
		auto hidden = make_uniq<PositionDeleteFilter>(snapshot, SnapshotFileList::SnapshotIndex(reader.file));
		if (hidden->Count() >= SnapshotFileList::Rows(reader.file)) {
			list.Counters()->files_skipped++;
			return ReaderInitializeType::SKIP_READING_FILE;
		}
		if (hidden->Count() > 0) {
			reader.deletion_filter = std::move(hidden);
		}
		list.Counters()->files_read++;
		list.Counters()->bytes += SnapshotFileList::Size(reader.file);
	} else {
		reader.Cast<OverlayReader>().Read(snapshot, list.Counters());
	}

	DistinctColumns distinct(snapshot->Table(), global_column_ids);
	ColumnConversion conversion(reader, global_columns, distinct.columns, table_filters, distinct.place);
	FinalizeBind(reader_data, bind_data.file_options, bind_data.reader_bind, global_columns, distinct.columns, context,
				 gstate.multi_file_reader_state.get());
	ShowRemoteNames(reader_data, distinct.columns);
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

unique_ptr<Expression> SnapshotMultiFileReader::GetConstantVirtualColumn(MultiFileReaderData &reader_data,
																		 idx_t column_id, const LogicalType &type) {
	if (column_id == RowColumns::SEQ) {
		auto seq = SnapshotFileList::CommonSeq(reader_data.reader->file);
		if (!seq.IsValid()) {
			return nullptr;
		}
		return make_uniq<BoundConstantExpression>(Value::BIGINT(NumericCast<int64_t>(seq.GetIndex())));
	}
	return MultiFileReader::GetConstantVirtualColumn(reader_data, column_id, type);
}

unique_ptr<Expression> SnapshotMultiFileReader::GetVirtualColumnExpression(
	ClientContext &context, MultiFileReaderData &reader_data, const vector<MultiFileColumnDefinition> &local_columns,
	idx_t &column_id, const LogicalType &type, MultiFileLocalIndex local_index,
	optional_ptr<MultiFileColumnDefinition> &global_column_reference) {
	if (column_id == RowColumns::SEQ) {
		global_column_reference = seq_column.get();
		return nullptr;
	}
	if (column_id == COLUMN_IDENTIFIER_ROW_ID) {
		column_id = COLUMN_IDENTIFIER_FILE_ROW_NUMBER;
		return RowColumns::RowIds(SnapshotFileList::Place(reader_data.reader->file),
								  make_uniq<BoundReferenceExpression>(type, local_index.GetIndex()));
	}
	return MultiFileReader::GetVirtualColumnExpression(context, reader_data, local_columns, column_id, type,
													   local_index, global_column_reference);
}

unique_ptr<MultiFileReader> SnapshotMultiFileReader::Copy() const {
	auto result = make_uniq<SnapshotMultiFileReader>(info);
	result->initial_defaults = initial_defaults;
	result->function_name = function_name;
	return std::move(result);
}

} // namespace duckdb
