#include "catalog/merutable_table_entry.hpp"

#include "catalog/merutable_transaction.hpp"
#include "duckdb/common/exception.hpp"
#include "duckdb/common/exception/binder_exception.hpp"
#include "duckdb/common/multi_file/multi_file_reader.hpp"
#include "duckdb/parser/constraints/check_constraint.hpp"
#include "duckdb/parser/constraints/not_null_constraint.hpp"
#include "duckdb/parser/constraints/unique_constraint.hpp"
#include "duckdb/parser/parsed_data/create_table_info.hpp"
#include "duckdb/parser/parser.hpp"
#include "duckdb/planner/expression/bound_columnref_expression.hpp"
#include "duckdb/planner/operator/logical_get.hpp"
#include "duckdb/planner/operator/logical_projection.hpp"
#include "duckdb/planner/operator/logical_update.hpp"
#include "duckdb/storage/statistics/base_statistics.hpp"
#include "duckdb/storage/table_storage_info.hpp"
#include "scan/key_columns.hpp"
#include "scan/merutable_scan.hpp"
#include "scan/row_columns.hpp"

namespace duckdb {

namespace {

//! What the engine keeps as text. what: names it in the error.
unique_ptr<ParsedExpression> ParseStored(const string &what, const string &text) {
	auto expressions = Parser::ParseExpressionList(text);
	if (expressions.size() != 1) {
		throw InvalidInputException("%s is no expression: %s", what, text);
	}
	return std::move(expressions[0]);
}

} // namespace

MerutableTableEntry::MerutableTableEntry(Catalog &catalog, SchemaCatalogEntry &schema, CreateTableInfo &info,
										 MeruTable table, shared_ptr<MeruSnapshotLease> historic)
	: TableCatalogEntry(catalog, schema, info), table(std::move(table)), historic(std::move(historic)) {
}

void MerutableTableEntry::RequireCurrent() const {
	if (historic) {
		throw BinderException("Table \"%s\" cannot be written to as of an older version: AT is for reading only", name);
	}
}

shared_ptr<MerutableTableEntry> MerutableTableEntry::Create(Catalog &catalog, SchemaCatalogEntry &schema,
															const MeruTable &table,
															shared_ptr<MeruSnapshotLease> historic) {
	CreateTableInfo info(catalog.GetName(), schema.name, table.name);
	for (idx_t i = 0; i < table.columns.size(); i++) {
		auto &column = table.columns[i];
		ColumnDefinition definition(column.name, column.type);
		if (!column.default_sql.empty()) {
			definition.SetDefaultValue(
				ParseStored("The DEFAULT of column \"" + column.name + "\"", column.default_sql));
		}
		if (!column.comment.empty()) {
			definition.SetComment(Value(column.comment));
		}
		info.columns.AddColumn(std::move(definition));
		if (!column.nullable || table.IsKey(i)) {
			info.constraints.push_back(make_uniq<NotNullConstraint>(LogicalIndex(i)));
		}
	}
	if (!table.comment.empty()) {
		info.comment = Value(table.comment);
	}
	vector<string> key_names;
	for (auto index : table.key) {
		key_names.push_back(table.columns[index].name);
	}
	info.constraints.push_back(make_uniq<UniqueConstraint>(std::move(key_names), true));
	for (auto &check : table.checks) {
		info.constraints.push_back(
			make_uniq<CheckConstraint>(ParseStored("A CHECK constraint of table \"" + table.name + "\"", check)));
	}
	return make_shared_ptr<MerutableTableEntry>(catalog, schema, info, table, std::move(historic));
}

unique_ptr<BaseStatistics> MerutableTableEntry::GetStatistics(ClientContext &, column_t) {
	return nullptr;
}

TableFunction MerutableTableEntry::GetScanFunction(ClientContext &context, unique_ptr<FunctionData> &bind_data) {
	if (historic) {
		return MerutableScan::Bind(context, historic, shared_from_this(), bind_data);
	}
	auto &transaction = MerutableTransaction::Get(context, catalog);
	return MerutableScan::Bind(context, transaction.Lease(table), shared_from_this(), bind_data);
}

TableStorageInfo MerutableTableEntry::GetStorageInfo(ClientContext &context) {
	TableStorageInfo result;
	auto lease = historic ? historic : MerutableTransaction::Get(context, catalog).TryLease(table);
	if (lease) {
		result.cardinality = lease->Get()->Info().live_rows;
	}
	IndexInfo key;
	key.is_unique = true;
	key.is_primary = true;
	key.is_foreign = false;
	key.column_set.insert(table.key.begin(), table.key.end());
	result.index_info.push_back(std::move(key));
	return result;
}

virtual_column_map_t MerutableTableEntry::GetVirtualColumns() const {
	virtual_column_map_t result;
	result.insert(make_pair(COLUMN_IDENTIFIER_EMPTY, TableColumn("", LogicalType::BOOLEAN)));
	result.insert(
		make_pair(MultiFileReader::COLUMN_IDENTIFIER_FILENAME, TableColumn("filename", LogicalType::VARCHAR)));
	result.insert(make_pair(MultiFileReader::COLUMN_IDENTIFIER_FILE_ROW_NUMBER,
							TableColumn("file_row_number", LogicalType::BIGINT)));
	RowColumns::AddTo(result);
	KeyColumns::AddTo(table, result);
	return result;
}

vector<column_t> MerutableTableEntry::GetRowIdColumns() const {
	return KeyColumns::Ids(table);
}

//! The expressions of proj from `first` on take a column that the statement reads anyway from there. A scan that has a
//! STRUCT twice, whole and for the fields that the statement names, would read those fields alone.
static void ReadOnce(const LogicalGet &get, LogicalProjection &proj, idx_t first) {
	auto &columns = get.GetColumnIds();
	for (idx_t i = first; i < proj.expressions.size(); i++) {
		auto &binding = proj.expressions[i]->Cast<BoundColumnRefExpression>().binding;
		for (idx_t before = 0; before < binding.column_index; before++) {
			if (columns[before] == columns[binding.column_index]) {
				binding.column_index = before;
				break;
			}
		}
	}
}

void MerutableTableEntry::BindUpdateConstraints(Binder &, LogicalGet &get, LogicalProjection &proj,
												LogicalUpdate &update, ClientContext &) {
	RequireCurrent();
	physical_index_set_t all_columns;
	for (idx_t i = 0; i < table.columns.size(); i++) {
		all_columns.insert(PhysicalIndex(i));
	}
	// Rows move where a column of their key changes.
	update.update_is_del_and_insert = false;
	for (auto &column : update.columns) {
		if (table.IsKey(column.index)) {
			update.update_is_del_and_insert = true;
		}
	}
	if (update.columns.empty()) {
		// INSERT OR REPLACE that names nothing but the key. DuckDB binds other columns beside one that is there.
		auto &type = table.columns[0].type;
		ColumnBinding projected(proj.table_index, proj.expressions.size());
		update.columns.push_back(PhysicalIndex(0));
		update.expressions.push_back(make_uniq<BoundColumnRefExpression>(type, projected));
		ColumnBinding stored(get.table_index, get.GetColumnIds().size());
		proj.expressions.push_back(make_uniq<BoundColumnRefExpression>(type, stored));
		get.AddColumnId(0);
	}
	// The new rows are written whole.
	auto bound = proj.expressions.size();
	LogicalUpdate::BindExtraColumns(*this, get, proj, update, all_columns);
	ReadOnce(get, proj, bound);
}

} // namespace duckdb
