#include "functions/merutable_functions.hpp"

#include "common/arrow_batches.hpp"
#include "duckdb/common/exception/binder_exception.hpp"
#include "duckdb/function/table_function.hpp"
#include "duckdb/main/extension/extension_loader.hpp"
#include "functions/database_target.hpp"

namespace duckdb {

namespace {

//! What a report is about, and the columns that its stream has.
struct ReportInfo : public TableFunctionInfo {
	ReportInfo(string function, string what, vector<string> names, vector<LogicalType> types)
		: function(std::move(function)), what(std::move(what)), names(std::move(names)), types(std::move(types)) {
	}

	string function;
	//! As meru_inspect() takes it.
	string what;
	vector<string> names;
	vector<LogicalType> types;
};

struct ReportBindData : public TableFunctionData {
	string name_or_path;
	string what;
};

struct ReportState : public GlobalTableFunctionState {
	//! Keeps the database open while the stream is read.
	shared_ptr<MeruDatabase> database;
	ArrowBatchStream stream;
	unique_ptr<ArrowColumns> columns;
	unique_ptr<ArrowBatch> batch;
};

unique_ptr<FunctionData> ReportBind(ClientContext &, TableFunctionBindInput &input, vector<LogicalType> &return_types,
									vector<string> &names) {
	auto &info = input.info->Cast<ReportInfo>();
	if (input.inputs[0].IsNull()) {
		throw BinderException("%s: the name or path is NULL", info.function);
	}
	names = info.names;
	return_types = info.types;
	auto result = make_uniq<ReportBindData>();
	result->name_or_path = StringValue::Get(input.inputs[0]);
	result->what = info.what;
	return std::move(result);
}

unique_ptr<GlobalTableFunctionState> ReportInit(ClientContext &context, TableFunctionInitInput &input) {
	auto &bind_data = input.bind_data->Cast<ReportBindData>();
	auto state = make_uniq<ReportState>();
	state->database = DatabaseTarget::ResolveReader(context, bind_data.name_or_path).database;
	MeruCall([&](char **err) {
		return meru_inspect(state->database->Get(), bind_data.what.c_str(), &state->stream.Out(), err);
	});
	state->columns = state->stream.Columns(context);
	return std::move(state);
}

void Report(ClientContext &context, TableFunctionInput &data, DataChunk &output) {
	auto &state = data.global_state->Cast<ReportState>();
	while (!state.batch || !state.batch->Next(output)) {
		auto next = state.stream.Next();
		if (!next) {
			return;
		}
		state.batch = make_uniq<ArrowBatch>(context, *state.columns, std::move(next));
	}
}

void RegisterReport(ExtensionLoader &loader, shared_ptr<ReportInfo> info) {
	TableFunction function(info->function, {LogicalType::VARCHAR}, Report, ReportBind, ReportInit);
	function.function_info = std::move(info);
	loader.RegisterFunction(function);
}

} // namespace

void MerutableReports::Register(ExtensionLoader &loader) {
	auto text = LogicalType::VARCHAR;
	auto number = LogicalType::BIGINT;
	RegisterReport(loader, make_shared_ptr<ReportInfo>("merutable_stats", "stats",
													   vector<string> {"name", "value", "unit"},
													   vector<LogicalType> {text, number, text}));
	RegisterReport(
		loader,
		make_shared_ptr<ReportInfo>(
			"merutable_files", "files",
			vector<string> {"path", "level", "rows", "deleted", "bytes", "seq_min", "seq_max", "key_min", "key_max"},
			vector<LogicalType> {text, number, number, number, number, number, number, text, text}));
	RegisterReport(loader, make_shared_ptr<ReportInfo>(
							   "merutable_snapshots", "versions",
							   vector<string> {"version", "committed", "job", "files", "rows", "bytes", "seq"},
							   vector<LogicalType> {number, LogicalType::TIMESTAMP_TZ, text, number, number, number,
													number}));
	RegisterReport(loader, make_shared_ptr<ReportInfo>("merutable_options", "options",
													   vector<string> {"name", "value", "sticks"},
													   vector<LogicalType> {text, text, LogicalType::BOOLEAN}));
}

} // namespace duckdb
