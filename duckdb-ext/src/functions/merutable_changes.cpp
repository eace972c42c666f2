#include "functions/merutable_functions.hpp"

#include "common/arrow_batches.hpp"
#include "common/snapshot.hpp"
#include "common/statement_snapshots.hpp"
#include "common/stored_form.hpp"
#include "duckdb/common/exception/binder_exception.hpp"
#include "duckdb/common/exception/catalog_exception.hpp"
#include "duckdb/common/exception/transaction_exception.hpp"
#include "duckdb/function/table_function.hpp"
#include "duckdb/main/extension/extension_loader.hpp"
#include "functions/database_target.hpp"
#include "functions/function_arguments.hpp"
#include "functions/meru_watcher.hpp"

namespace duckdb {

namespace {

constexpr const char *CHANGES_NAME = "merutable_changes";
constexpr const char *UNTIL = "until";
constexpr const char *BEFORE = "before";
constexpr const char *AFTER = "after";
//! In the engine's stream, before the key: sequence number and operation.
constexpr idx_t FIRST_KEY = 2;

struct ChangesBindData : public TableFunctionData {
	string name_or_path;
	//! Empty: the one that is meant where none is named.
	string table_name;
	uint64_t since = 0;
	//! 0: what is there when the function runs.
	uint64_t until = 0;
	MeruTable table;

	//! The columns are those of the table at one execution.
	bool SupportStatementCache() const override {
		return false;
	}
};

struct ChangesState : public GlobalTableFunctionState {
	//! Keeps the database open while the stream is read. NULL before the first row is asked for.
	shared_ptr<MeruDatabase> database;
	ArrowBatchStream stream;
	unique_ptr<ArrowColumns> columns;
	unique_ptr<ArrowBatch> batch;
	DataChunk raw;
	//! The parts of raw in the table's types.
	DataChunk key;
	DataChunk image;
	MeruProgress progress;
};

uint64_t SequenceNumber(const Value &value, const char *what) {
	if (value.IsNull()) {
		throw BinderException("%s: %s is NULL", CHANGES_NAME, what);
	}
	auto result = BigIntValue::Get(value);
	if (result < 0) {
		throw BinderException("%s: %s is a sequence number, not %lld", CHANGES_NAME, what, result);
	}
	return NumericCast<uint64_t>(result);
}

shared_ptr<MeruDatabase> OpenTable(ClientContext &context, const ChangesBindData &bind_data) {
	auto database = DatabaseTarget::ResolveReader(context, bind_data.name_or_path).database;
	MeruTableListRef tables(*database);
	auto &info = StatementSnapshots::FindTable(tables, bind_data.name_or_path, bind_data.table_name);
	auto table = info.id == 0 ? database : database->OpenTable(info.id);
	if (!table) {
		throw TransactionException("Table \"%s\" was dropped while the statement was planned", info.name);
	}
	return table;
}

LogicalType ImageType(const MeruTable &table) {
	child_list_t<LogicalType> children;
	for (auto &column : table.columns) {
		children.emplace_back(column.name, column.type);
	}
	return LogicalType::STRUCT(std::move(children));
}

unique_ptr<FunctionData> ChangesBind(ClientContext &context, TableFunctionBindInput &input,
									 vector<LogicalType> &return_types, vector<string> &names) {
	auto result = make_uniq<ChangesBindData>();
	result->name_or_path = NameOrPath(input, CHANGES_NAME);
	result->since = SequenceNumber(input.inputs[1], "since_seq");
	auto named = input.named_parameters.find(UNTIL);
	if (named != input.named_parameters.end() || input.inputs.size() > 2) {
		if (named != input.named_parameters.end() && input.inputs.size() > 2) {
			throw BinderException("%s: until is given twice", CHANGES_NAME);
		}
		result->until = SequenceNumber(input.inputs.size() > 2 ? input.inputs[2] : named->second, UNTIL);
		if (result->until < result->since) {
			throw BinderException("%s: until %llu comes before since_seq %llu", CHANGES_NAME, result->until,
								  result->since);
		}
		if (result->until == 0) {
			throw BinderException("%s: until is 0: the first sequence number is 1", CHANGES_NAME);
		}
	}
	result->table_name = StatementSnapshots::TableParameter(CHANGES_NAME, input.named_parameters);
	auto snapshot = MeruSnapshotRef::Acquire(OpenTable(context, *result));
	if (!snapshot) {
		throw CatalogException("There is no merutable table in \"%s\"", result->name_or_path);
	}
	result->table = snapshot->Table();
	auto &table = result->table;
	names = {"seq", "op"};
	return_types = {LogicalType::BIGINT, LogicalType::VARCHAR};
	for (auto index : table.key) {
		names.push_back(table.columns[index].name);
		return_types.push_back(table.columns[index].type);
	}
	for (auto image : {BEFORE, AFTER}) {
		names.push_back(image);
		return_types.push_back(ImageType(table));
	}
	return std::move(result);
}

unique_ptr<GlobalTableFunctionState> ChangesInit(ClientContext &, TableFunctionInitInput &) {
	return make_uniq<ChangesState>();
}

void Open(ClientContext &context, const ChangesBindData &bind_data, ChangesState &state) {
	state.database = OpenTable(context, bind_data);
	auto snapshot = MeruSnapshotRef::Acquire(state.database);
	if (!snapshot || !snapshot->Table().Equals(bind_data.table)) {
		throw TransactionException("Table \"%s\" was dropped, replaced or altered while the statement was planned",
								   bind_data.table.name);
	}
	snapshot.reset();
	MeruWatcher watcher(context, state.progress);
	MeruCall([&](char **err) {
		return meru_changes(state.database->Get(), bind_data.since, bind_data.until, watcher.Get(), nullptr,
							&state.stream.Out(), err);
	});
	auto &table = bind_data.table;
	state.columns = state.stream.Columns(context);
	auto types = state.columns->Types();
	if (types.size() != FIRST_KEY + table.key.size() + 2 * table.columns.size()) {
		throw TransactionException("Table \"%s\" was altered while the statement began", table.name);
	}
	state.raw.Initialize(context, types);
	state.key.Initialize(context, table.KeyTypes());
	state.image.Initialize(context, table.Types());
}

//! Decodes some columns of the raw chunk, from one on, into the types of output.
void DecodePart(ChangesState &state, idx_t from, DataChunk &output) {
	output.Reset();
	for (idx_t i = 0; i < output.ColumnCount(); i++) {
		StoredForm::Decode(state.raw.data[from + i], output.data[i], state.raw.size());
	}
	output.SetCardinality(state.raw.size());
}

//! Makes a vector of structs of an image. A struct is NULL where all of its fields are: a row has a key.
void FillImage(DataChunk &image, idx_t key_column, Vector &output) {
	auto count = image.size();
	output.SetVectorType(VectorType::FLAT_VECTOR);
	auto &fields = StructVector::GetEntries(output);
	for (idx_t i = 0; i < fields.size(); i++) {
		VectorOperations::Copy(image.data[i], *fields[i], count, 0, 0);
	}
	UnifiedVectorFormat key;
	image.data[key_column].ToUnifiedFormat(count, key);
	for (idx_t row = 0; row < count; row++) {
		if (!key.validity.RowIsValid(key.sel->get_index(row))) {
			FlatVector::SetNull(output, row, true);
		}
	}
}

void Changes(ClientContext &context, TableFunctionInput &data, DataChunk &output) {
	auto &state = data.global_state->Cast<ChangesState>();
	auto &bind_data = data.bind_data->Cast<ChangesBindData>();
	if (!state.database) {
		Open(context, bind_data, state);
	}
	while (!state.batch || !state.batch->Next(state.raw)) {
		auto next = state.stream.Next();
		if (!next) {
			return;
		}
		state.batch = make_uniq<ArrowBatch>(context, *state.columns, std::move(next));
	}
	auto &table = bind_data.table;
	output.SetCardinality(state.raw.size());
	VectorOperations::Cast(context, state.raw.data[0], output.data[0], state.raw.size());
	output.data[1].Reference(state.raw.data[1]);
	DecodePart(state, FIRST_KEY, state.key);
	for (idx_t i = 0; i < table.key.size(); i++) {
		output.data[FIRST_KEY + i].Reference(state.key.data[i]);
	}
	auto from = FIRST_KEY + table.key.size();
	for (idx_t which = 0; which < 2; which++) {
		DecodePart(state, from + which * table.columns.size(), state.image);
		FillImage(state.image, table.key[0], output.data[from + which]);
	}
}

double ChangesProgress(ClientContext &, const FunctionData *, const GlobalTableFunctionState *state) {
	return state->Cast<ChangesState>().progress.Percent();
}

} // namespace

void MerutableChanges::Register(ExtensionLoader &loader) {
	TableFunctionSet set(CHANGES_NAME);
	TableFunction function(CHANGES_NAME, {LogicalType::VARCHAR, LogicalType::BIGINT}, Changes, ChangesBind,
						   ChangesInit);
	function.named_parameters[UNTIL] = LogicalType::BIGINT;
	StatementSnapshots::AddTableParameter(function.named_parameters);
	function.table_scan_progress = ChangesProgress;
	set.AddFunction(function);
	function.arguments.push_back(LogicalType::BIGINT);
	set.AddFunction(function);
	RegisterDescribed(loader, std::move(set),
					  {{"name_or_path", "since_seq", "until"},
					   "The changes of a merutable table after one sequence number and up to another, in order",
					   {"FROM merutable_changes('m', 0)", "FROM merutable_changes('m', 1000, until := 2000)"}});
}

} // namespace duckdb
