#include "functions/merutable_functions.hpp"

#include "common/arrow_batches.hpp"
#include "duckdb/function/table_function.hpp"
#include "duckdb/main/client_context.hpp"
#include "duckdb/main/extension/extension_loader.hpp"
#include "functions/database_target.hpp"
#include "functions/function_arguments.hpp"

#include <chrono>

namespace duckdb {

namespace {

struct CompactBindData : public TableFunctionData {
	string name_or_path;
};

struct CompactState : public GlobalTableFunctionState {
	bool done = false;
	MeruProgress progress;
};

//! The statistics of a database by name.
using stats_t = unordered_map<string, int64_t>;

stats_t StatsOf(ClientContext &context, MeruDatabase &database) {
	ArrowBatchStream stream;
	MeruCall([&](char **err) { return meru_inspect(database.Get(), "stats", &stream.Out(), err); });
	auto columns = stream.Columns(context);
	DataChunk rows;
	rows.Initialize(context, columns->Types());
	stats_t result;
	while (auto next = stream.Next()) {
		ArrowBatch batch(context, *columns, std::move(next));
		while (batch.Next(rows)) {
			for (idx_t i = 0; i < rows.size(); i++) {
				result[StringValue::Get(rows.GetValue(0, i))] = BigIntValue::Get(rows.GetValue(1, i));
			}
		}
	}
	return result;
}

unique_ptr<FunctionData> CompactBind(ClientContext &, TableFunctionBindInput &input, vector<LogicalType> &return_types,
									 vector<string> &names) {
	auto result = make_uniq<CompactBindData>();
	result->name_or_path = NameOrPath(input, "merutable_compact");
	names = {"database",     "path",       "files_before",  "files_after", "bytes_before", "bytes_after",
			 "rows_dropped", "bytes_read", "bytes_written", "version",     "milliseconds"};
	return_types = vector<LogicalType>(names.size(), LogicalType::BIGINT);
	return_types[0] = return_types[1] = LogicalType::VARCHAR;
	return std::move(result);
}

unique_ptr<GlobalTableFunctionState> CompactInit(ClientContext &, TableFunctionInitInput &) {
	return make_uniq<CompactState>();
}

void Compact(ClientContext &context, TableFunctionInput &data, DataChunk &output) {
	auto &state = data.global_state->Cast<CompactState>();
	if (state.done) {
		return;
	}
	state.done = true;
	auto target = DatabaseTarget::Resolve(context, data.bind_data->Cast<CompactBindData>().name_or_path);
	auto &database = *target.database;
	// What is in memory counts as it will lie in files.
	MeruWatcher watcher(context, state.progress);
	MeruCall([&](char **err) { return meru_flush_watched(database.Get(), watcher.Get(), err); });
	auto before = StatsOf(context, database);
	auto started = std::chrono::steady_clock::now();
	CompactTables(database, state.progress, watcher.Get());
	auto took = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - started);
	auto after = StatsOf(context, database);
	// What other compactions and writers did meanwhile is counted too.
	auto grown = [&](const char *name) {
		return after[name] - before[name];
	};
	const vector<int64_t> figures = {before["data_files"],
									 after["data_files"],
									 before["data_bytes"],
									 after["data_bytes"],
									 -grown("file_rows"),
									 grown("compaction_bytes_read"),
									 grown("compaction_bytes_written"),
									 after["version"],
									 NumericCast<int64_t>(took.count())};
	output.SetValue(0, 0, Value(target.name));
	output.SetValue(1, 0, Value(database.Path()));
	for (idx_t i = 0; i < figures.size(); i++) {
		output.SetValue(i + 2, 0, Value::BIGINT(figures[i]));
	}
	output.SetCardinality(1);
}

double CompactProgress(ClientContext &, const FunctionData *, const GlobalTableFunctionState *state) {
	return state->Cast<CompactState>().progress.Percent();
}

} // namespace

void MerutableCompact::Register(ExtensionLoader &loader) {
	TableFunction function("merutable_compact", {LogicalType::VARCHAR}, Compact, CompactBind, CompactInit);
	function.table_scan_progress = CompactProgress;
	RegisterDescribed(
		loader, std::move(function),
		{{"name_or_path"},
		 "Makes one sorted run of all data files of each table of a merutable database, without deleted rows",
		 {"CALL merutable_compact('m')", "CALL merutable_compact('path/to/m')"}});
}

} // namespace duckdb
