#include "catalog/alter_table.hpp"

#include "catalog/merutable_table_entry.hpp"
#include "catalog/table_definition.hpp"
#include "common/arrow_rows.hpp"
#include "common/meru_status.hpp"
#include "duckdb/common/exception/binder_exception.hpp"
#include "duckdb/common/exception/catalog_exception.hpp"
#include "duckdb/common/string_util.hpp"
#include "duckdb/execution/expression_executor.hpp"
#include "duckdb/parser/expression/cast_expression.hpp"
#include "duckdb/parser/expression/columnref_expression.hpp"
#include "duckdb/parser/parsed_data/alter_table_info.hpp"
#include "duckdb/parser/parsed_data/comment_on_column_info.hpp"
#include "duckdb/parser/parsed_expression_iterator.hpp"
#include "duckdb/parser/parser.hpp"
#include "duckdb/planner/binder.hpp"
#include "duckdb/planner/expression_binder/constant_binder.hpp"

namespace duckdb {

namespace {

//! The column of that name; throws where there is none.
const MeruColumn &FindColumn(const MerutableTableEntry &entry, const string &name) {
	for (auto &column : entry.Table().columns) {
		if (StringUtil::CIEquals(column.name, name)) {
			return column;
		}
	}
	throw BinderException("Table \"%s\" does not have a column with name \"%s\"", entry.name, name);
}

void RequireNoZero(const string &what, const string &text) {
	if (text.find('\0') != string::npos) {
		throw InvalidInputException("%s with a zero byte is not supported", what);
	}
}

unique_ptr<Expression> BindDefault(ClientContext &context, const ParsedExpression &expression,
								   const LogicalType &type) {
	auto binder = Binder::CreateBinder(context);
	ConstantBinder default_binder(*binder, context, "DEFAULT value");
	default_binder.target_type = type;
	auto copy = expression.Copy();
	return default_binder.Bind(copy);
}

//! A schema of one column, for the engine's descriptions of columns.
MeruTable TableOf(MeruColumn column) {
	MeruTable result;
	result.name = "column";
	result.columns.push_back(std::move(column));
	return result;
}

//! Calls fn with the engine's description of a column, valid for the call.
template <class FN>
void WithColumnInfo(const MeruTable &table, FN &&fn) {
	auto schema = table.ToEngine();
	MeruColumnInfo info;
	memset(&info, 0, sizeof(info));
	MeruCall([&](char **err) { return meru_table_schema_column(schema.Get(), 0, &info, err); });
	fn(info);
}

void AddColumn(ClientContext &context, const MerutableTableEntry &entry, AddColumnInfo &info, MeruAlterHandle &alter) {
	auto &definition = info.new_column;
	auto column = TableDefinition::MakeColumn(definition);
	RequireNoZero("A column name", column.name);
	Value initial(column.type);
	if (definition.HasDefaultValue() && !(info.if_column_not_exists && entry.ColumnExists(column.name))) {
		auto expression = BindDefault(context, definition.DefaultValue(), column.type);
		if (expression->IsVolatile()) {
			// Without IF NOT EXISTS, DuckDB makes ADD COLUMN, UPDATE and SET DEFAULT of it.
			throw NotImplementedException(
				"ADD COLUMN IF NOT EXISTS \"%s\": a DEFAULT that differs from row to row (%s) "
				"is not supported with IF NOT EXISTS",
				column.name, column.default_sql);
		}
		initial = ExpressionExecutor::EvaluateScalar(context, *expression, true).DefaultCastAs(column.type);
	}
	auto table = TableOf(std::move(column));
	WithColumnInfo(table, [&](const MeruColumnInfo &column_info) {
		auto add = [&](ArrowArray *value, const ArrowSchema *schema) {
			MeruCall([&](char **err) {
				return meru_alter_add_column_arrow(alter.Get(), &column_info, value, schema,
												   info.if_column_not_exists ? 1 : 0, err);
			});
		};
		if (initial.IsNull()) {
			add(nullptr, nullptr);
			return;
		}
		DataChunk row;
		row.Initialize(context, table.Types());
		row.SetValue(0, 0, initial);
		row.SetCardinality(1);
		ArrowRowBuffer buffer(context, table, {0});
		auto flush = [&](ArrowArray &value, const ArrowSchema &schema) {
			add(&value, &schema);
		};
		buffer.Append(row, flush);
		buffer.Flush(flush);
	});
}

void SetDefault(ClientContext &context, const MerutableTableEntry &entry, SetDefaultInfo &info,
				MeruAlterHandle &alter) {
	auto &column = FindColumn(entry, info.column_name);
	string text;
	if (info.expression) {
		BindDefault(context, *info.expression, column.type);
		text = TableDefinition::StoredText("Column \"" + column.name + "\": the DEFAULT", *info.expression);
	}
	MeruCall([&](char **err) {
		return meru_alter_set_default(alter.Get(), column.name.c_str(), info.expression ? text.c_str() : nullptr, err);
	});
}

//! Visits the names of columns in an expression.
void VisitColumns(ParsedExpression &expression, const std::function<void(string &name)> &fn) {
	if (expression.GetExpressionClass() == ExpressionClass::COLUMN_REF) {
		fn(expression.Cast<ColumnRefExpression>().column_names.back());
		return;
	}
	ParsedExpressionIterator::EnumerateChildren(expression,
												[&](unique_ptr<ParsedExpression> &child) { VisitColumns(*child, fn); });
}

//! The CHECK constraints of a table after a change of a column: change is given the constraint and how often it names
//! the column, and other ones, and says whether it stays.
void ChangeChecks(const MerutableTableEntry &entry, const string &column, MeruAlterHandle &alter,
				  const std::function<bool(ParsedExpression &check, idx_t uses, idx_t others)> &change) {
	vector<string> texts;
	bool changed = false;
	for (auto &check : entry.Table().checks) {
		auto parsed = std::move(Parser::ParseExpressionList(check)[0]);
		idx_t uses = 0;
		idx_t others = 0;
		VisitColumns(*parsed, [&](string &name) { (StringUtil::CIEquals(name, column) ? uses : others)++; });
		if (uses == 0) {
			texts.push_back(check);
			continue;
		}
		changed = true;
		if (change(*parsed, uses, others)) {
			texts.push_back(TableDefinition::StoredText("The CHECK constraint", *parsed));
		}
	}
	if (!changed) {
		return;
	}
	vector<const char *> pointers;
	for (auto &text : texts) {
		pointers.push_back(text.c_str());
	}
	MeruCall([&](char **err) { return meru_alter_set_checks(alter.Get(), pointers.data(), pointers.size(), err); });
}

void RenameColumn(const MerutableTableEntry &entry, RenameColumnInfo &info, MeruAlterHandle &alter) {
	auto &column = FindColumn(entry, info.old_name);
	RequireNoZero("A column name", info.new_name);
	ChangeChecks(entry, column.name, alter, [&](ParsedExpression &check, idx_t, idx_t) {
		VisitColumns(check, [&](string &name) {
			if (StringUtil::CIEquals(name, column.name)) {
				name = info.new_name;
			}
		});
		return true;
	});
	MeruCall([&](char **err) {
		return meru_alter_rename_column(alter.Get(), column.name.c_str(), info.new_name.c_str(), err);
	});
}

void DropColumn(const MerutableTableEntry &entry, RemoveColumnInfo &info, MeruAlterHandle &alter) {
	if (info.if_column_exists && !entry.ColumnExists(info.removed_column)) {
		return;
	}
	auto &column = FindColumn(entry, info.removed_column);
	ChangeChecks(entry, column.name, alter, [&](ParsedExpression &check, idx_t, idx_t others) {
		if (others > 0) {
			throw CatalogException(
				"Cannot drop column \"%s\": a CHECK constraint of table \"%s\" depends on it and on others: %s",
				column.name, entry.name, check.ToString());
		}
		return false;
	});
	MeruCall([&](char **err) {
		return meru_alter_drop_column(alter.Get(), column.name.c_str(), info.if_column_exists ? 1 : 0, err);
	});
}

//! Whether the USING of a change of type is the plain conversion of the column, of which it then gives the type.
bool IsPlainCast(ClientContext &context, const ParsedExpression &expression, const string &column, LogicalType &type) {
	auto names_column = [&](const ParsedExpression &child) {
		return child.GetExpressionClass() == ExpressionClass::COLUMN_REF &&
			   StringUtil::CIEquals(child.Cast<ColumnRefExpression>().GetColumnName(), column);
	};
	if (names_column(expression)) {
		return true;
	}
	if (expression.GetExpressionClass() != ExpressionClass::CAST) {
		return false;
	}
	auto &cast = expression.Cast<CastExpression>();
	if (cast.try_cast || !names_column(*cast.child)) {
		return false;
	}
	auto cast_type = cast.cast_type;
	Binder::CreateBinder(context)->BindLogicalType(cast_type);
	if (type.id() == LogicalTypeId::UNKNOWN) {
		type = cast_type;
	}
	return cast_type == type;
}

void SetType(ClientContext &context, const MerutableTableEntry &entry, ChangeColumnTypeInfo &info,
			 MeruAlterHandle &alter) {
	auto &column = FindColumn(entry, info.column_name);
	auto type = info.target_type;
	if (!IsPlainCast(context, *info.expression, column.name, type)) {
		throw NotImplementedException(
			"Column \"%s\": USING %s would rewrite the rows, which ALTER TABLE does not do in "
			"merutable tables: add a column, UPDATE it, drop the old one and rename",
			column.name, info.expression->ToString());
	}
	for (auto index : entry.Table().key) {
		if (&entry.Table().columns[index] == &column) {
			throw BinderException("Cannot change the type of column \"%s\": it is part of the primary key",
								  column.name);
		}
	}
	ChangeChecks(entry, column.name, alter, [&](ParsedExpression &check, idx_t, idx_t) -> bool {
		throw BinderException("Cannot change the type of column \"%s\": the CHECK constraint %s depends on it",
							  column.name, check.ToString());
	});
	MeruColumn changed;
	changed.name = column.name;
	changed.type = type;
	WithColumnInfo(TableOf(std::move(changed)), [&](const MeruColumnInfo &column_info) {
		MeruCall([&](char **err) { return meru_alter_set_type(alter.Get(), &column_info, err); });
	});
}

void SetNotNull(const MerutableTableEntry &entry, const string &name, bool not_null, MeruAlterHandle &alter) {
	auto &column = FindColumn(entry, name);
	MeruCall(
		[&](char **err) { return meru_alter_set_not_null(alter.Get(), column.name.c_str(), not_null ? 1 : 0, err); });
}

void SetComment(const char *column, const Value &comment, MeruAlterHandle &alter) {
	auto text = comment.IsNull() ? string() : comment.ToString();
	RequireNoZero("A comment", text);
	MeruCall([&](char **err) {
		return meru_alter_set_comment(alter.Get(), column, comment.IsNull() ? nullptr : text.c_str(), err);
	});
}

[[noreturn]] void ThrowUnsupported(const char *what) {
	throw NotImplementedException("ALTER TABLE … %s is not supported for merutable tables", what);
}

void TranslateTable(ClientContext &context, const MerutableTableEntry &table, AlterTableInfo &info,
					MeruAlterHandle &alter) {
	switch (info.alter_table_type) {
	case AlterTableType::ADD_COLUMN:
		return AddColumn(context, table, info.Cast<AddColumnInfo>(), alter);
	case AlterTableType::REMOVE_COLUMN:
		return DropColumn(table, info.Cast<RemoveColumnInfo>(), alter);
	case AlterTableType::RENAME_COLUMN:
		return RenameColumn(table, info.Cast<RenameColumnInfo>(), alter);
	case AlterTableType::RENAME_TABLE: {
		auto &name = info.Cast<RenameTableInfo>().new_table_name;
		RequireNoZero("A table name", name);
		MeruCall([&](char **err) { return meru_alter_rename_table(alter.Get(), name.c_str(), err); });
		return;
	}
	case AlterTableType::SET_DEFAULT:
		return SetDefault(context, table, info.Cast<SetDefaultInfo>(), alter);
	case AlterTableType::ALTER_COLUMN_TYPE:
		return SetType(context, table, info.Cast<ChangeColumnTypeInfo>(), alter);
	case AlterTableType::SET_NOT_NULL:
		return SetNotNull(table, info.Cast<SetNotNullInfo>().column_name, true, alter);
	case AlterTableType::DROP_NOT_NULL:
		return SetNotNull(table, info.Cast<DropNotNullInfo>().column_name, false, alter);
	case AlterTableType::ADD_FIELD:
		ThrowUnsupported("ADD COLUMN of a field of a STRUCT");
	case AlterTableType::REMOVE_FIELD:
		ThrowUnsupported("DROP COLUMN of a field of a STRUCT");
	case AlterTableType::RENAME_FIELD:
		ThrowUnsupported("RENAME COLUMN of a field of a STRUCT");
	case AlterTableType::ADD_CONSTRAINT:
		ThrowUnsupported("ADD CONSTRAINT");
	case AlterTableType::FOREIGN_KEY_CONSTRAINT:
		ThrowUnsupported("ADD FOREIGN KEY");
	case AlterTableType::SET_PARTITIONED_BY:
		ThrowUnsupported("SET PARTITIONED BY");
	case AlterTableType::SET_SORTED_BY:
		ThrowUnsupported("SET SORTED BY");
	case AlterTableType::SET_TABLE_OPTIONS:
	case AlterTableType::RESET_TABLE_OPTIONS:
		ThrowUnsupported("SET or RESET of options");
	default:
		ThrowUnsupported("of this kind");
	}
}

} // namespace

void AlterTable::Translate(ClientContext &context, const MerutableTableEntry &table, AlterInfo &info,
						   MeruAlterHandle &alter) {
	switch (info.type) {
	case AlterType::ALTER_TABLE:
		return TranslateTable(context, table, info.Cast<AlterTableInfo>(), alter);
	case AlterType::SET_COMMENT:
		return SetComment(nullptr, info.Cast<SetCommentInfo>().comment_value, alter);
	case AlterType::SET_COLUMN_COMMENT: {
		auto &column = info.Cast<SetColumnCommentInfo>();
		return SetComment(FindColumn(table, column.column_name).name.c_str(), column.comment_value, alter);
	}
	default:
		throw NotImplementedException("This ALTER is not supported in merutable databases");
	}
}

string AlterTable::NameAfter(AlterInfo &info) {
	if (info.type == AlterType::ALTER_TABLE &&
		info.Cast<AlterTableInfo>().alter_table_type == AlterTableType::RENAME_TABLE) {
		return info.Cast<RenameTableInfo>().new_table_name;
	}
	return info.name;
}

void AlterTable::ThrowError(int status, char *message) {
	auto text = message ? string(message) : string();
	switch (status) {
	case MeruStatus_ErrSchemaMismatch: // rows do not fit
		meru_free_string(message);
		throw ConstraintException("%s", text);
	case MeruStatus_ErrInvalidArg:
		meru_free_string(message);
		throw CatalogException("%s", text);
	case MeruStatus_ErrUnsupported:
		meru_free_string(message);
		throw NotImplementedException("%s", text);
	default:
		ThrowMeruError(status, message);
	}
}

} // namespace duckdb
