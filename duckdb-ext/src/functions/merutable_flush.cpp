#include "functions/merutable_functions.hpp"

#include "common/snapshot.hpp"
#include "duckdb/function/table_function.hpp"
#include "duckdb/main/extension/extension_loader.hpp"
#include "functions/database_target.hpp"
#include "functions/function_arguments.hpp"
#include "functions/meru_watcher.hpp"

namespace duckdb {

namespace {

struct FlushBindData : public TableFunctionData {
	string name_or_path;
};

struct FlushState : public GlobalTableFunctionState {
	bool done = false;
};

unique_ptr<FunctionData> FlushBind(ClientContext &, TableFunctionBindInput &input, vector<LogicalType> &return_types,
								   vector<string> &names) {
	names = {"database", "path", "rows_flushed", "files", "version"};
	return_types = {LogicalType::VARCHAR, LogicalType::VARCHAR, LogicalType::UBIGINT, LogicalType::UBIGINT,
					LogicalType::BIGINT};
	auto result = make_uniq<FlushBindData>();
	result->name_or_path = NameOrPath(input, "merutable_flush");
	return std::move(result);
}

unique_ptr<GlobalTableFunctionState> FlushInit(ClientContext &, TableFunctionInitInput &) {
	return make_uniq<FlushState>();
}

//! Figures of all tables together; the version is that of the table in the root.
MeruSnapshotInfo InfoOf(const shared_ptr<MeruDatabase> &database) {
	MeruSnapshotInfo result;
	memset(&result, 0, sizeof(result));
	MeruSnapshotSetRef snapshots(*database);
	for (auto &table : MeruTableListRef(*database)) {
		auto snapshot = snapshots.Of(table.id, database);
		if (!snapshot) {
			continue;
		}
		auto &info = snapshot->Info();
		result.memory_rows += info.memory_rows;
		result.file_count += info.file_count;
		if (table.id == 0) {
			result.version = info.version;
		}
	}
	return result;
}

void Flush(ClientContext &context, TableFunctionInput &data, DataChunk &output) {
	auto &state = data.global_state->Cast<FlushState>();
	if (state.done) {
		return;
	}
	state.done = true;
	auto target = DatabaseTarget::Resolve(context, data.bind_data->Cast<FlushBindData>().name_or_path);
	auto before = InfoOf(target.database);
	MeruProgress progress;
	MeruWatcher watcher(context, progress);
	MeruCall([&](char **err) { return meru_flush_watched(target.database->Get(), watcher.Get(), err); });
	auto after = InfoOf(target.database);
	output.SetValue(0, 0, Value(target.name));
	output.SetValue(1, 0, Value(target.database->Path()));
	// Rows written meanwhile may have come after the flush.
	auto flushed = before.memory_rows > after.memory_rows ? before.memory_rows - after.memory_rows : 0;
	output.SetValue(2, 0, Value::UBIGINT(flushed));
	output.SetValue(3, 0, Value::UBIGINT(after.file_count));
	output.SetValue(4, 0, Value::BIGINT(after.version));
	output.SetCardinality(1);
}

} // namespace

void MerutableFlush::Register(ExtensionLoader &loader) {
	RegisterDescribed(loader, TableFunction("merutable_flush", {LogicalType::VARCHAR}, Flush, FlushBind, FlushInit),
					  {{"name_or_path"},
					   "Writes the rows of a merutable database that are only in memory to data files",
					   {"CALL merutable_flush('m')"}});
}

} // namespace duckdb
