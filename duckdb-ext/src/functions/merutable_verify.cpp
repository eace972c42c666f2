#include "functions/merutable_functions.hpp"

#include "common/arrow_batches.hpp"
#include "common/location.hpp"
#include "duckdb/function/table_function.hpp"
#include "duckdb/main/extension/extension_loader.hpp"
#include "functions/database_target.hpp"
#include "functions/function_arguments.hpp"
#include "functions/meru_watcher.hpp"

namespace duckdb {

namespace {

constexpr const char *VERIFY_NAME = "merutable_verify";

struct VerifyBindData : public TableFunctionData {
	string name_or_path;
};

struct VerifyState : public GlobalTableFunctionState {
	bool begun = false;
	ArrowBatchStream stream;
	unique_ptr<ArrowColumns> columns;
	unique_ptr<ArrowBatch> batch;
	MeruProgress progress;
};

unique_ptr<FunctionData> VerifyBind(ClientContext &, TableFunctionBindInput &input, vector<LogicalType> &return_types,
									vector<string> &names) {
	auto result = make_uniq<VerifyBindData>();
	result->name_or_path = NameOrPath(input, VERIFY_NAME);
	names = {"kind", "path", "what", "status", "detail"};
	return_types = vector<LogicalType>(names.size(), LogicalType::VARCHAR);
	return std::move(result);
}

unique_ptr<GlobalTableFunctionState> VerifyInit(ClientContext &, TableFunctionInitInput &) {
	return make_uniq<VerifyState>();
}

void Verify(ClientContext &context, TableFunctionInput &data, DataChunk &output) {
	auto &state = data.global_state->Cast<VerifyState>();
	if (!state.begun) {
		state.begun = true;
		auto location = DatabaseLocation::Resolve(context, data.bind_data->Cast<VerifyBindData>().name_or_path);
		MeruWatcher watcher(context, state.progress);
		MeruCall([&](char **err) {
			return StatusAt(location.path, meru_verify_with(location.path.c_str(), location.settings->Get(),
															watcher.Get(), &state.stream.Out(), err));
		});
		state.columns = state.stream.Columns(context);
	}
	while (!state.batch || !state.batch->Next(output)) {
		auto next = state.stream.Next();
		if (!next) {
			return;
		}
		state.batch = make_uniq<ArrowBatch>(context, *state.columns, std::move(next));
	}
}

double VerifyProgress(ClientContext &, const FunctionData *, const GlobalTableFunctionState *state) {
	return state->Cast<VerifyState>().progress.Percent();
}

} // namespace

void MerutableVerify::Register(ExtensionLoader &loader) {
	TableFunction function(VERIFY_NAME, {LogicalType::VARCHAR}, Verify, VerifyBind, VerifyInit);
	function.table_scan_progress = VerifyProgress;
	RegisterDescribed(loader, std::move(function),
					  {{"name_or_path"},
					   "Checks every file of a merutable database and names what is damaged",
					   {"FROM merutable_verify('m') WHERE status <> 'ok'"}});
}

} // namespace duckdb
