#include "functions/merutable_functions.hpp"

#include "common/location.hpp"
#include "duckdb/common/exception/binder_exception.hpp"
#include "duckdb/function/table_function.hpp"
#include "duckdb/main/extension/extension_loader.hpp"
#include "functions/database_target.hpp"
#include "functions/function_arguments.hpp"

namespace duckdb {

namespace {

constexpr const char *CLONE_NAME = "merutable_clone";
constexpr const char *VERSION = "version";

struct CloneBindData : public TableFunctionData {
	string source;
	string path;
	//! 0: the newest.
	int64_t version = 0;
};

struct CloneState : public GlobalTableFunctionState {
	bool done = false;
	MeruProgress progress;
};

unique_ptr<FunctionData> CloneBind(ClientContext &, TableFunctionBindInput &input, vector<LogicalType> &return_types,
								   vector<string> &names) {
	auto result = make_uniq<CloneBindData>();
	result->source = NameOrPath(input, CLONE_NAME);
	if (input.inputs[1].IsNull()) {
		throw BinderException("%s: the path of the clone is NULL", CLONE_NAME);
	}
	result->path = StringValue::Get(input.inputs[1]);
	auto version = input.named_parameters.find(VERSION);
	if (version != input.named_parameters.end()) {
		result->version = version->second.IsNull() ? 0 : BigIntValue::Get(version->second);
		if (result->version < 1) {
			throw BinderException("%s: %s is a number from 1 on, see merutable_snapshots()", CLONE_NAME, VERSION);
		}
	}
	names = {"source", "path", "version", "tables", "files", "bytes", "rows", "rows_from_memory"};
	return_types = vector<LogicalType>(names.size(), LogicalType::BIGINT);
	return_types[0] = return_types[1] = LogicalType::VARCHAR;
	return std::move(result);
}

unique_ptr<GlobalTableFunctionState> CloneInit(ClientContext &, TableFunctionInitInput &) {
	return make_uniq<CloneState>();
}

void Clone(ClientContext &context, TableFunctionInput &data, DataChunk &output) {
	auto &state = data.global_state->Cast<CloneState>();
	if (state.done) {
		return;
	}
	state.done = true;
	auto &bind_data = data.bind_data->Cast<CloneBindData>();
	auto source = DatabaseLocation::Resolve(context, bind_data.source);
	auto path = ResolveMerutablePath(context, bind_data.path);
	MeruWatcher watcher(context, state.progress);
	MeruCloneReport report;
	MeruCall([&](char **err) {
		return StatusAt(source.path, meru_clone(source.path.c_str(), path.c_str(), source.settings->Get(),
												bind_data.version, watcher.Get(), &report, err));
	});
	output.SetValue(0, 0, Value(source.path));
	output.SetValue(1, 0, Value(path));
	output.SetValue(2, 0, Value::BIGINT(report.version));
	output.SetValue(3, 0, Value::BIGINT(NumericCast<int64_t>(report.tables)));
	output.SetValue(4, 0, Value::BIGINT(NumericCast<int64_t>(report.files)));
	output.SetValue(5, 0, Value::BIGINT(NumericCast<int64_t>(report.bytes)));
	output.SetValue(6, 0, Value::BIGINT(NumericCast<int64_t>(report.rows)));
	output.SetValue(7, 0, Value::BIGINT(NumericCast<int64_t>(report.rows_from_memory)));
	output.SetCardinality(1);
}

double CloneProgress(ClientContext &, const FunctionData *, const GlobalTableFunctionState *state) {
	return state->Cast<CloneState>().progress.Percent();
}

} // namespace

void MerutableClone::Register(ExtensionLoader &loader) {
	TableFunction function(CLONE_NAME, {LogicalType::VARCHAR, LogicalType::VARCHAR}, Clone, CloneBind, CloneInit);
	function.named_parameters[VERSION] = LogicalType::BIGINT;
	function.table_scan_progress = CloneProgress;
	RegisterDescribed(
		loader, std::move(function),
		{{"name_or_path", "path"},
		 "Makes a writable local copy of a merutable database, of a mirror for example",
		 {"CALL merutable_clone('s3://bucket/prefix', 'path')", "CALL merutable_clone('m', 'path', version := 7)"}});
}

} // namespace duckdb
