#include "functions/merutable_functions.hpp"

#include "common/key_arrow.hpp"
#include "common/statement_snapshots.hpp"
#include "duckdb/common/exception/binder_exception.hpp"
#include "duckdb/function/cast_rules.hpp"
#include "duckdb/function/table_function.hpp"
#include "duckdb/main/extension/extension_loader.hpp"
#include "functions/function_arguments.hpp"

namespace duckdb {

namespace {

struct GetBindData : public TableFunctionData {
	shared_ptr<MeruSnapshotLease> lease;
	vector<Value> key;

	//! The snapshot is that of one execution.
	bool SupportStatementCache() const override {
		return false;
	}
};

struct GetState : public GlobalTableFunctionState {
	vector<column_t> column_ids;
	bool done = false;
};

//! A value as a key column has it. DuckDB would cast safely by itself, or the value comes out the same: 7 is a SMALLINT
//! if it is an INTEGER, 7.5 is neither.
Value CastKey(ClientContext &context, const MeruColumn &column, idx_t position, const Value &value) {
	if (value.IsNull()) {
		throw BinderException("merutable_get: key column \"%s\" (argument %llu) is NULL, which no key is", column.name,
							  static_cast<uint64_t>(position + 2));
	}
	if (value.type() == column.type) {
		return value;
	}
	Value result;
	string error;
	auto can_cast = value.TryCastAs(context, column.type, result, &error);
	if (can_cast && value.type().id() != LogicalTypeId::VARCHAR &&
		CastFunctionSet::ImplicitCastCost(context, value.type(), column.type) < 0) {
		// Not a cast that is always safe: safe for this value?
		Value back;
		can_cast = value.type().IsNumeric() && column.type.IsNumeric() &&
				   result.TryCastAs(context, value.type(), back, &error) && Value::NotDistinctFrom(back, value);
	}
	if (!can_cast) {
		throw BinderException("merutable_get: key column \"%s\" (argument %llu) is %s: cannot take %s of type %s",
							  column.name, static_cast<uint64_t>(position + 2), column.type.ToString(),
							  value.ToSQLString(), value.type().ToString());
	}
	return result;
}

unique_ptr<FunctionData> GetBind(ClientContext &context, TableFunctionBindInput &input,
								 vector<LogicalType> &return_types, vector<string> &names) {
	if (input.inputs[0].IsNull()) {
		throw BinderException("merutable_get: the path is NULL");
	}
	auto result = make_uniq<GetBindData>();
	auto name = StatementSnapshots::TableParameter("merutable_get", input.named_parameters);
	result->lease = StatementSnapshots::Get(context, StringValue::Get(input.inputs[0]), name);
	auto snapshot = result->lease->Get();
	auto &table = snapshot->Table();
	auto given = input.inputs.size() - 1;
	if (given != table.key.size()) {
		vector<string> key;
		for (auto index : table.key) {
			key.push_back(table.columns[index].name + " " + table.columns[index].type.ToString());
		}
		throw BinderException("merutable_get: the primary key of table \"%s\" is (%s), number of values given: %llu",
							  table.name, StringUtil::Join(key, ", "), static_cast<uint64_t>(given));
	}
	for (idx_t i = 0; i < given; i++) {
		result->key.push_back(CastKey(context, table.columns[table.key[i]], i, input.inputs[i + 1]));
	}
	names = table.Names();
	return_types = table.Types();
	return std::move(result);
}

unique_ptr<GlobalTableFunctionState> GetInit(ClientContext &, TableFunctionInitInput &input) {
	auto result = make_uniq<GetState>();
	result->column_ids = input.column_ids;
	return std::move(result);
}

void Get(ClientContext &context, TableFunctionInput &data, DataChunk &output) {
	auto &state = data.global_state->Cast<GetState>();
	if (state.done) {
		return;
	}
	state.done = true;
	auto &bind_data = data.bind_data->Cast<GetBindData>();
	auto snapshot = bind_data.lease->Get();
	auto &table = snapshot->Table();
	DataChunk key;
	key.Initialize(context, table.KeyTypes(), 1);
	for (idx_t i = 0; i < bind_data.key.size(); i++) {
		key.SetValue(i, 0, bind_data.key[i]);
	}
	key.SetCardinality(1);
	DataChunk row;
	row.Initialize(context, table.Types());
	if (!LookupKey(context, *snapshot, key, row)) {
		return;
	}
	for (idx_t i = 0; i < state.column_ids.size(); i++) {
		// A row that is only counted has a column without a number.
		if (state.column_ids[i] < row.ColumnCount()) {
			output.data[i].Reference(row.data[state.column_ids[i]]);
		}
	}
	output.SetCardinality(1);
}

unique_ptr<NodeStatistics> GetCardinality(ClientContext &, const FunctionData *) {
	return make_uniq<NodeStatistics>(1, 1);
}

} // namespace

void MerutableGet::Register(ExtensionLoader &loader) {
	TableFunction function("merutable_get", {LogicalType::VARCHAR}, Get, GetBind, GetInit);
	function.varargs = LogicalType::ANY;
	function.projection_pushdown = true;
	StatementSnapshots::AddTableParameter(function.named_parameters);
	function.cardinality = GetCardinality;
	RegisterDescribed(
		loader, std::move(function),
		{{"path"},
		 "The row of a key of the merutable table in a directory, or none; the key's values follow the path",
		 {"FROM merutable_get('path/to/m', 42)"}});
}

} // namespace duckdb
