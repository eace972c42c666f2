#include "catalog/merutable_catalog.hpp"

#include "catalog/merutable_schema_entry.hpp"
#include "catalog/merutable_storage.hpp"
#include "catalog/merutable_table_entry.hpp"
#include "catalog/merutable_transaction.hpp"
#include "duckdb/common/exception/catalog_exception.hpp"
#include "duckdb/common/string_util.hpp"
#include "duckdb/logging/logger.hpp"
#include "duckdb/main/attached_database.hpp"
#include "duckdb/main/database.hpp"
#include "duckdb/parser/parsed_data/create_schema_info.hpp"
#include "duckdb/parser/parsed_data/drop_info.hpp"
#include "duckdb/storage/database_size.hpp"

namespace duckdb {

namespace {

//! For places that must not throw.
void LogError(DatabaseInstance &instance, const string &doing, const std::exception &error) noexcept {
	try {
		DUCKDB_LOG_ERROR(instance, doing + ": " + ErrorData(error).Message());
	} catch (...) { // NOLINT: nothing is left that could be done
	}
}

} // namespace

void DropIfEmpty(DatabaseInstance &instance, const MeruDatabase &database, const string &name) noexcept {
	try {
		auto table = database.OpenTable(name);
		auto snapshot = table ? MeruSnapshotRef::Acquire(table) : nullptr;
		if (snapshot && snapshot->Info().live_rows == 0) {
			snapshot.reset();
			MeruCall([&](char **err) { return meru_drop_table(table->Get(), err); });
		}
	} catch (std::exception &ex) {
		LogError(instance, "Dropping a table that could not be filled", ex);
	}
}

MerutableCatalog::MerutableCatalog(AttachedDatabase &db, shared_ptr<MeruDatabase> database_p, string attached_path)
	: Catalog(db), database(std::move(database_p)), attached_path(std::move(attached_path)) {
}

MerutableCatalog::~MerutableCatalog() {
	if (db.IsReadOnly()) {
		return;
	}
	try {
		current.reset(); // the handles of tables
		database->Close();
	} catch (std::exception &ex) {
		// What was acknowledged is in the log, and comes back at the next open.
		LogError(db.GetDatabase(), "Closing merutable database \"" + attached_path + "\"", ex);
	}
}

void MerutableCatalog::RequireWritable() const {
	if (GetAttached().IsReadOnly()) {
		throw InvalidInputException("Database \"%s\" is attached in read-only mode: nothing can be written to it",
									GetName());
	}
}

optional_ptr<const MerutableTableState> MerutableTables::Find(const string &name) const {
	auto found = by_name.find(name);
	return found == by_name.end() ? nullptr : &found->second;
}

shared_ptr<const MerutableTables> MerutableCatalog::CurrentTables() {
	lock_guard<mutex> guard(lock);
	// Read before the tables: if they change in between, the next look finds out.
	auto state = meru_catalog_version(database->Get());
	if (current && state == engine_state) {
		return current;
	}
	auto result = make_shared_ptr<MerutableTables>();
	result->version = current ? current->version + 1 : 1;
	MeruTableListRef list(*database);
	for (auto &info : list) {
		auto table = Look(info.id);
		if (table.entry) {
			result->by_name[table.entry->name] = std::move(table);
		}
	}
	current = result;
	engine_state = state;
	return current;
}

shared_ptr<const MerutableTables> MerutableCatalog::TablesDuring(const std::function<void()> &take) {
	constexpr idx_t ATTEMPTS = 10;
	shared_ptr<const MerutableTables> result;
	for (idx_t i = 0; i < ATTEMPTS && !(result && result == CurrentTables()); i++) {
		result = CurrentTables();
		take();
	}
	return result;
}

MerutableTableState MerutableCatalog::Look(uint64_t id) {
	MerutableTableState result;
	result.id = id;
	shared_ptr<MerutableTableEntry> known;
	if (current) {
		for (auto &table : current->by_name) {
			if (table.second.id == id) {
				known = table.second.entry;
				result.database = table.second.database;
			}
		}
	}
	if (!result.database) {
		result.database = id == 0 ? database : database->OpenTable(id);
	}
	MeruTableSchema *engine_schema = nullptr;
	if (!result.database || !MeruCallIfFound([&](char **err) {
			return meru_table_schema_get(result.database->Get(), &engine_schema, err);
		})) {
		return result;
	}
	MeruSchemaHandle handle(engine_schema);
	auto table = MeruTable::FromEngine(*engine_schema);
	result.entry = known && known->Table().Equals(table) ? known : MerutableTableEntry::Create(*this, *schema, table);
	return result;
}

shared_ptr<MerutableTableEntry> MerutableCatalog::MakeEntry(const MeruTable &table) {
	return MerutableTableEntry::Create(*this, *schema, table);
}

void MerutableCatalog::Initialize(bool) {
	CreateSchemaInfo info;
	info.schema = DEFAULT_SCHEMA;
	info.internal = true;
	schema = make_uniq<MerutableSchemaEntry>(*this, info);
}

string MerutableCatalog::GetCatalogType() {
	return MerutableStorage::TYPE;
}

optional_idx MerutableCatalog::GetCatalogVersion(ClientContext &context) {
	// Statements that read a table are bound anew for each execution anyway, see MeruSnapshotLease.
	return MerutableTransaction::Get(context, *this).Tables()->version;
}

optional_ptr<CatalogEntry> MerutableCatalog::CreateSchema(CatalogTransaction, CreateSchemaInfo &info) {
	if (info.schema == DEFAULT_SCHEMA && info.on_conflict == OnCreateConflict::IGNORE_ON_CONFLICT) {
		return nullptr;
	}
	throw NotImplementedException("CREATE SCHEMA is not supported in merutable databases: the only schema is \"%s\"",
								  DEFAULT_SCHEMA);
}

void MerutableCatalog::DropSchema(ClientContext &, DropInfo &info) {
	throw NotImplementedException("DROP SCHEMA is not supported in merutable databases: the schema \"%s\" stays",
								  info.name);
}

optional_ptr<SchemaCatalogEntry> MerutableCatalog::LookupSchema(CatalogTransaction transaction,
																const EntryLookupInfo &schema_lookup,
																OnEntryNotFound if_not_found) {
	if (transaction.HasContext()) {
		MerutableTransaction::Get(transaction.GetContext(), *this); // as in ScanSchemas
	}
	auto &name = schema_lookup.GetEntryName();
	if (name.empty() || StringUtil::CIEquals(name, DEFAULT_SCHEMA)) {
		return schema.get();
	}
	if (if_not_found == OnEntryNotFound::THROW_EXCEPTION) {
		throw CatalogException(
			schema_lookup.GetErrorContext(),
			"Schema with name \"%s\" does not exist: the only schema of merutable database \"%s\" is "
			"\"%s\"",
			name, GetName(), DEFAULT_SCHEMA);
	}
	return nullptr;
}

void MerutableCatalog::ScanSchemas(ClientContext &context, std::function<void(SchemaCatalogEntry &)> callback) {
	// Whoever lists the schema keeps a reference to it: the transaction keeps the database, should it be detached
	// meanwhile.
	MerutableTransaction::Get(context, *this);
	callback(*schema);
}

CatalogLookupBehavior MerutableCatalog::CatalogTypeLookupRule(CatalogType type) const {
	switch (type) {
	case CatalogType::TABLE_ENTRY:
	case CatalogType::VIEW_ENTRY:
	case CatalogType::SCHEMA_ENTRY:
		return CatalogLookupBehavior::STANDARD;
	default:
		return CatalogLookupBehavior::NEVER_LOOKUP;
	}
}

ErrorData MerutableCatalog::SupportsCreateTable(BoundCreateTableInfo &) {
	return ErrorData();
}

DatabaseSize MerutableCatalog::GetDatabaseSize(ClientContext &context) {
	DatabaseSize result;
	auto &transaction = MerutableTransaction::Get(context, *this);
	for (auto &table : transaction.Tables()->by_name) {
		auto lease = transaction.TryLease(table.second.entry->Table());
		if (!lease) {
			continue;
		}
		auto snapshot = lease->Get();
		for (idx_t i = 0; i < snapshot->Info().file_count; i++) {
			MeruFileInfo file;
			MeruCall([&](char **err) { return meru_snapshot_file(snapshot->Get(), i, &file, err); });
			result.bytes += file.size;
		}
	}
	return result;
}

bool MerutableCatalog::HasConflictingAttachOptions(const string &path, const AttachOptions &options) {
	return path != attached_path || !StringUtil::CIEquals(options.db_type, GetCatalogType()) ||
		   !options.options.empty();
}

void MerutableCatalog::Flush() {
	MeruCall([&](char **err) { return meru_flush(database->Get(), err); });
}

bool MerutableCatalog::InMemory() {
	return false;
}

string MerutableCatalog::GetDBPath() {
	return database->Path();
}

void MerutableCatalog::OnDetach(ClientContext &) {
	// In an object store each commit has its files, so that nothing is in memory.
	if (db.IsReadOnly() || IsObjectStoreUrl(database->Path())) {
		return;
	}
	try {
		Flush();
	} catch (std::exception &ex) {
		ErrorData(ex).Throw("Database \"" + GetName() +
							"\" was detached, but its rows in memory could not be written to data files (they are in "
							"its log): ");
	}
}

} // namespace duckdb
