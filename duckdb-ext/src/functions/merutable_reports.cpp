#include "functions/merutable_functions.hpp"

#include "common/arrow_batches.hpp"
#include "duckdb/common/exception/binder_exception.hpp"
#include "duckdb/function/table_function.hpp"
#include "duckdb/main/extension/extension_loader.hpp"
#include "functions/database_target.hpp"
#include "functions/function_arguments.hpp"

namespace duckdb {

namespace {

constexpr const char *DRY_RUN = "dry_run";
constexpr const char *WAIT_SECS = "wait_secs";
constexpr const char *MIRROR_STATUS = "mirror_status";
constexpr double MAX_WAIT_SECS = 7 * 86400;

//! What a report is about, and the columns that its stream has.
struct ReportInfo : public TableFunctionInfo {
	ReportInfo(string function, string what, vector<string> names, vector<LogicalType> types, string description)
		: function(std::move(function)), what(std::move(what)), names(std::move(names)), types(std::move(types)),
		  description(std::move(description)) {
	}

	string function;
	//! As meru_inspect() takes it; empty: a collection of garbage.
	string what;
	vector<string> names;
	vector<LogicalType> types;
	string description;
};

struct ReportBindData : public TableFunctionData {
	string name_or_path;
	string what;
	bool dry_run = false;
	//! For the mirror: how long until everything is there.
	double wait_secs = 0;
};

struct ReportState : public GlobalTableFunctionState {
	//! Keeps the database open while the stream is read. NULL before the first row is asked for.
	shared_ptr<MeruDatabase> database;
	ArrowBatchStream stream;
	unique_ptr<ArrowColumns> columns;
	unique_ptr<ArrowBatch> batch;
	MeruProgress progress;
};

unique_ptr<FunctionData> ReportBind(ClientContext &, TableFunctionBindInput &input, vector<LogicalType> &return_types,
									vector<string> &names) {
	auto &info = input.info->Cast<ReportInfo>();
	names = info.names;
	return_types = info.types;
	auto result = make_uniq<ReportBindData>();
	result->name_or_path = NameOrPath(input, info.function.c_str());
	result->what = info.what;
	auto dry_run = input.named_parameters.find(DRY_RUN);
	if (dry_run != input.named_parameters.end()) {
		if (dry_run->second.IsNull()) {
			throw BinderException("%s: %s is NULL", info.function, DRY_RUN);
		}
		result->dry_run = BooleanValue::Get(dry_run->second);
	}
	auto wait_secs = input.named_parameters.find(WAIT_SECS);
	if (wait_secs != input.named_parameters.end()) {
		result->wait_secs = wait_secs->second.IsNull() ? -1 : DoubleValue::Get(wait_secs->second);
		if (!(result->wait_secs >= 0 && result->wait_secs <= MAX_WAIT_SECS)) {
			throw BinderException("%s: %s is a number of seconds from 0 to %d", info.function, WAIT_SECS,
								  static_cast<int32_t>(MAX_WAIT_SECS));
		}
	}
	return std::move(result);
}

unique_ptr<GlobalTableFunctionState> ReportInit(ClientContext &, TableFunctionInitInput &) {
	return make_uniq<ReportState>();
}

//! That it took too long, the report tells.
void WaitForMirror(ClientContext &context, const ReportBindData &bind_data, ReportState &state) {
	MeruWatcher watcher(context, state.progress);
	int reached = 0;
	auto milliseconds = static_cast<uint64_t>(bind_data.wait_secs * 1000);
	MeruCall([&](char **err) {
		return meru_mirror_wait(state.database->Get(), milliseconds, watcher.Get(), &reached, err);
	});
}

void Open(ClientContext &context, const ReportBindData &bind_data, ReportState &state) {
	if (bind_data.what.empty()) {
		state.database = DatabaseTarget::Resolve(context, bind_data.name_or_path).database;
		MeruCall([&](char **err) {
			return meru_collect_garbage(state.database->Get(), bind_data.dry_run ? 1 : 0, &state.stream.Out(), err);
		});
	} else {
		state.database = DatabaseTarget::ResolveReader(context, bind_data.name_or_path).database;
		if (bind_data.wait_secs > 0) {
			WaitForMirror(context, bind_data, state);
		}
		MeruCall([&](char **err) {
			return meru_inspect(state.database->Get(), bind_data.what.c_str(), &state.stream.Out(), err);
		});
	}
	state.columns = state.stream.Columns(context);
}

void Report(ClientContext &context, TableFunctionInput &data, DataChunk &output) {
	auto &state = data.global_state->Cast<ReportState>();
	if (!state.database) {
		Open(context, data.bind_data->Cast<ReportBindData>(), state);
	}
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
	if (info->what.empty()) {
		function.named_parameters[DRY_RUN] = LogicalType::BOOLEAN;
	}
	if (info->what == MIRROR_STATUS) {
		function.named_parameters[WAIT_SECS] = LogicalType::DOUBLE;
	}
	FunctionText text{{"name_or_path"}, info->description, {"FROM " + info->function + "('m')"}};
	function.function_info = std::move(info);
	RegisterDescribed(loader, std::move(function), std::move(text));
}

} // namespace

void MerutableReports::Register(ExtensionLoader &loader) {
	auto text = LogicalType::VARCHAR;
	auto number = LogicalType::BIGINT;
	RegisterReport(loader, make_shared_ptr<ReportInfo>(
							   "merutable_stats", "stats", vector<string>{"name", "value", "unit"},
							   vector<LogicalType>{text, number, text}, "Counters and gauges of a merutable database"));
	RegisterReport(loader,
				   make_shared_ptr<ReportInfo>(
					   "merutable_files", "files",
					   vector<string>{"path", "level", "rows", "deleted", "bytes", "seq_min", "seq_max", "key_min",
									  "key_max", "table_name"},
					   vector<LogicalType>{text, number, number, number, number, number, number, text, text, text},
					   "The data files of the newest versions of the tables of a merutable database"));
	RegisterReport(
		loader, make_shared_ptr<ReportInfo>(
					"merutable_snapshots", "versions",
					vector<string>{"version", "committed", "job", "files", "rows", "bytes", "seq", "table_name"},
					vector<LogicalType>{number, LogicalType::TIMESTAMP_TZ, text, number, number, number, number, text},
					"The versions of the tables of a merutable database that are kept, for AT (VERSION => …)"));
	RegisterReport(loader, make_shared_ptr<ReportInfo>(
							   "merutable_gc", "", vector<string>{"path", "bytes", "reason", "removed", "error"},
							   vector<LogicalType>{text, number, text, LogicalType::BOOLEAN, text},
							   "Removes at once the files of a merutable database that nothing needs"));
	RegisterReport(loader, make_shared_ptr<ReportInfo>("merutable_options", "options",
													   vector<string>{"name", "value", "sticks"},
													   vector<LogicalType>{text, text, LogicalType::BOOLEAN},
													   "The options that a merutable database works with"));
	auto instant = LogicalType::TIMESTAMP_TZ;
	RegisterReport(
		loader, make_shared_ptr<ReportInfo>(
					"merutable_mirror_status", MIRROR_STATUS,
					vector<string>{"destination", "state", "mirror_seq", "visible_seq", "mirror_lag_secs", "alert",
								   "bytes_pending", "files_pending", "bytes_uploaded", "files_uploaded",
								   "manifests_uploaded", "retries", "last_error", "last_error_at", "last_success_at"},
					vector<LogicalType>{text, text, number, number, LogicalType::DOUBLE, LogicalType::BOOLEAN, number,
										number, number, number, number, number, text, instant, instant},
					"How far the mirror of a merutable database is; wait_secs: waits until what is in files is there"));
}

} // namespace duckdb
