//! DuckDB's multi-file scan over a snapshot.

#pragma once

#include "scan/scan_function_info.hpp"
#include "scan/snapshot_file_list.hpp"
#include "duckdb/common/multi_file/multi_file_reader.hpp"

namespace duckdb {

struct SnapshotMultiFileReader : public MultiFileReader {
  public:
	explicit SnapshotMultiFileReader(shared_ptr<ScanFunctionInfo> info);
	static unique_ptr<MultiFileReader> Create(const TableFunction &function);

	shared_ptr<MultiFileList> CreateFileList(ClientContext &context, const vector<string> &paths,
											 const FileGlobInput &glob_input) override;
	bool Bind(MultiFileOptions &options, MultiFileList &files, vector<LogicalType> &return_types, vector<string> &names,
			  MultiFileReaderBindData &bind_data) override;
	shared_ptr<BaseFileReader> CreateReader(ClientContext &context, GlobalTableFunctionState &gstate,
											const OpenFileInfo &file, idx_t file_idx,
											const MultiFileBindData &bind_data) override;
	ReaderInitializeType InitializeReader(MultiFileReaderData &reader_data, const MultiFileBindData &bind_data,
										  const vector<MultiFileColumnDefinition> &global_columns,
										  const vector<ColumnIndex> &global_column_ids,
										  optional_ptr<TableFilterSet> table_filters, ClientContext &context,
										  MultiFileGlobalState &gstate) override;
	unique_ptr<Expression> GetConstantVirtualColumn(MultiFileReaderData &reader_data, idx_t column_id,
													const LogicalType &type) override;
	unique_ptr<Expression>
	GetVirtualColumnExpression(ClientContext &context, MultiFileReaderData &reader_data,
							   const vector<MultiFileColumnDefinition> &local_columns, idx_t &column_id,
							   const LogicalType &type, MultiFileLocalIndex local_index,
							   optional_ptr<MultiFileColumnDefinition> &global_column_reference) override;
	unique_ptr<MultiFileReader> Copy() const override;

  private:
	shared_ptr<ScanFunctionInfo> info;
	//! The sequence number, as files have it.
	unique_ptr<MultiFileColumnDefinition> seq_column;
	//! By column of the table that is bound.
	vector<Value> initial_defaults;
};

} // namespace duckdb
