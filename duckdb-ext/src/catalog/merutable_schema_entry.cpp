#include "catalog/merutable_schema_entry.hpp"

#include "catalog/alter_table.hpp"
#include "catalog/merutable_table_entry.hpp"
#include "catalog/merutable_transaction.hpp"
#include "catalog/table_definition.hpp"
#include "duckdb/common/exception/binder_exception.hpp"
#include "duckdb/common/exception/catalog_exception.hpp"
#include "duckdb/common/string_util.hpp"
#include "duckdb/parser/parsed_data/alter_info.hpp"
#include "duckdb/parser/parsed_data/create_schema_info.hpp"
#include "duckdb/parser/parsed_data/create_table_info.hpp"
#include "duckdb/parser/parsed_data/drop_info.hpp"
#include "duckdb/planner/parsed_data/bound_create_table_info.hpp"

namespace duckdb {

MerutableSchemaEntry::MerutableSchemaEntry(MerutableCatalog &catalog, CreateSchemaInfo &info)
	: SchemaCatalogEntry(catalog, info), merutable(catalog) {
}

void MerutableSchemaEntry::Scan(ClientContext &context, CatalogType type,
								const std::function<void(CatalogEntry &)> &callback) {
	if (type != CatalogType::TABLE_ENTRY) {
		return;
	}
	for (auto &table : MerutableTransaction::Get(context, merutable).Tables()->by_name) {
		callback(*table.second.entry);
	}
}

void MerutableSchemaEntry::Scan(CatalogType type, const std::function<void(CatalogEntry &)> &callback) {
	if (type != CatalogType::TABLE_ENTRY) {
		return;
	}
	for (auto &table : merutable.CurrentTables()->by_name) {
		callback(*table.second.entry);
	}
}

optional_ptr<CatalogEntry> MerutableSchemaEntry::LookupEntry(CatalogTransaction transaction,
															 const EntryLookupInfo &lookup_info) {
	auto type = lookup_info.GetCatalogType();
	if (type != CatalogType::TABLE_ENTRY && type != CatalogType::VIEW_ENTRY) {
		return nullptr;
	}
	// Without a transaction the catalog itself keeps the entry, until a table changes.
	auto tables = transaction.transaction ? transaction.transaction->Cast<MerutableTransaction>().Tables()
										  : merutable.CurrentTables();
	auto found = tables->Find(lookup_info.GetEntryName());
	if (!found) {
		return nullptr;
	}
	auto &entry = *found->entry;
	if (auto at = lookup_info.GetAtClause()) {
		if (!transaction.transaction || !transaction.HasContext()) {
			throw BinderException("Table \"%s\" can be read AT a version only inside a transaction", entry.name);
		}
		if (!found->database) {
			throw BinderException("Table \"%s\" was made by this transaction: it has no older versions", entry.name);
		}
		auto &historic = transaction.transaction->Cast<MerutableTransaction>().Historic();
		return historic.Lookup(transaction.GetContext(), entry, found->database, *at).get();
	}
	return entry;
}

bool MerutableSchemaEntry::MayCreate(ClientContext &context, const string &name, OnCreateConflict on_conflict) {
	if (!MerutableTransaction::Get(context, merutable).Tables()->Find(name)) {
		return true;
	}
	switch (on_conflict) {
	case OnCreateConflict::IGNORE_ON_CONFLICT:
		return false;
	case OnCreateConflict::REPLACE_ON_CONFLICT:
		return true;
	default:
		throw CatalogException::EntryAlreadyExists(CatalogType::TABLE_ENTRY, name);
	}
}

optional_ptr<CatalogEntry> MerutableSchemaEntry::CreateTable(CatalogTransaction transaction,
															 BoundCreateTableInfo &info) {
	merutable.RequireWritable();
	auto &base = info.Base().Cast<CreateTableInfo>();
	auto &context = transaction.GetContext();
	if (!MayCreate(context, base.table, base.on_conflict)) {
		return nullptr;
	}
	auto &merutable_transaction = MerutableTransaction::Get(context, merutable);
	if (!merutable_transaction.CreateTable(context, TableDefinition::Make(base), base.on_conflict)) {
		// Somebody else was faster.
		MayCreate(context, base.table, base.on_conflict);
		return nullptr;
	}
	auto created = merutable_transaction.Tables()->Find(base.table);
	return created ? created->entry.get() : nullptr; // somebody else may have dropped it
}

void MerutableSchemaEntry::DropEntry(ClientContext &context, DropInfo &info) {
	merutable.RequireWritable();
	if (info.type != CatalogType::TABLE_ENTRY) {
		throw CatalogException("\"%s\" is a table: use DROP TABLE", info.name);
	}
	if (!MerutableTransaction::Get(context, merutable).DropTable(info.name) &&
		info.if_not_found == OnEntryNotFound::THROW_EXCEPTION) {
		throw CatalogException("Table with name \"%s\" does not exist any more", info.name);
	}
}

void MerutableSchemaEntry::ThrowUnsupported(const char *what) const {
	throw NotImplementedException("%s is not supported in merutable database \"%s\": it holds tables and nothing else",
								  what, merutable.GetName());
}

void MerutableSchemaEntry::Alter(CatalogTransaction transaction, AlterInfo &info) {
	merutable.RequireWritable();
	auto &context = transaction.GetContext();
	auto &merutable_transaction = MerutableTransaction::Get(context, merutable);
	auto tables = merutable_transaction.Tables();
	auto found = tables->Find(info.name);
	if (!found) {
		if (info.if_not_found == OnEntryNotFound::RETURN_NULL) {
			return;
		}
		throw CatalogException("Table with name \"%s\" does not exist any more", info.name);
	}
	MeruAlterHandle alter;
	AlterTable::Translate(context, *found->entry, info, alter);
	merutable_transaction.Alter(info.name, AlterTable::NameAfter(info), found->database.get(), alter);
}

optional_ptr<CatalogEntry> MerutableSchemaEntry::CreateIndex(CatalogTransaction, CreateIndexInfo &,
															 TableCatalogEntry &) {
	ThrowUnsupported("CREATE INDEX");
}

optional_ptr<CatalogEntry> MerutableSchemaEntry::CreateFunction(CatalogTransaction, CreateFunctionInfo &) {
	ThrowUnsupported("CREATE FUNCTION");
}

optional_ptr<CatalogEntry> MerutableSchemaEntry::CreateView(CatalogTransaction, CreateViewInfo &) {
	ThrowUnsupported("CREATE VIEW");
}

optional_ptr<CatalogEntry> MerutableSchemaEntry::CreateSequence(CatalogTransaction, CreateSequenceInfo &) {
	ThrowUnsupported("CREATE SEQUENCE");
}

optional_ptr<CatalogEntry> MerutableSchemaEntry::CreateTableFunction(CatalogTransaction, CreateTableFunctionInfo &) {
	ThrowUnsupported("CREATE FUNCTION");
}

optional_ptr<CatalogEntry> MerutableSchemaEntry::CreateCopyFunction(CatalogTransaction, CreateCopyFunctionInfo &) {
	ThrowUnsupported("A copy function");
}

optional_ptr<CatalogEntry> MerutableSchemaEntry::CreatePragmaFunction(CatalogTransaction, CreatePragmaFunctionInfo &) {
	ThrowUnsupported("A pragma");
}

optional_ptr<CatalogEntry> MerutableSchemaEntry::CreateCollation(CatalogTransaction, CreateCollationInfo &) {
	ThrowUnsupported("A collation");
}

optional_ptr<CatalogEntry> MerutableSchemaEntry::CreateType(CatalogTransaction, CreateTypeInfo &) {
	ThrowUnsupported("CREATE TYPE");
}

} // namespace duckdb
