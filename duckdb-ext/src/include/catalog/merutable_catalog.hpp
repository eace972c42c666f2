//! An attached database directory as DuckDB sees it: one schema, "main", with its tables.

#pragma once

#include "catalog/on_duplicate.hpp"
#include "common/snapshot.hpp"
#include "duckdb/catalog/catalog.hpp"

namespace duckdb {
class MerutableSchemaEntry;
class MerutableTableEntry;

//! Drops a table that was created a moment ago and stayed empty, because what should have filled it failed. A table
//! that somebody else wrote to meanwhile stays. Never throws: what goes wrong is in the log of the instance.
void DropIfEmpty(DatabaseInstance &instance, const MeruDatabase &database, const string &name) noexcept;

//! A table: what the engine calls it, its entry, and the handle through which it is read and written.
struct MerutableTableState {
	uint64_t id = 0;
	shared_ptr<MerutableTableEntry> entry;
	shared_ptr<MeruDatabase> database;
};

//! The tables at one moment. Immutable.
struct MerutableTables {
	//! A number that no other state of the catalog has.
	idx_t version = 0;
	case_insensitive_map_t<MerutableTableState> by_name;

	//! NULL where there is none of that name.
	optional_ptr<const MerutableTableState> Find(const string &name) const;
};

class MerutableCatalog : public Catalog {
  public:
	MerutableCatalog(AttachedDatabase &db, shared_ptr<MeruDatabase> database, string attached_path);
	//! Closes the database: what is in memory goes to files.
	~MerutableCatalog() override;

	MeruDatabase &Database() {
		return *database;
	}
	const shared_ptr<MeruDatabase> &SharedDatabase() const {
		return database;
	}
	//! Throws where the database is attached READ_ONLY.
	void RequireWritable() const;
	//! What the engine has now, whoever made it. Entries live as long as somebody holds them.
	shared_ptr<const MerutableTables> CurrentTables();
	//! The same for who takes a state of the database with it: take is called until the tables were the same before and
	//! after it. A table that changes all the time is found out by whoever asks for its snapshot.
	shared_ptr<const MerutableTables> TablesDuring(const std::function<void()> &take);
	//! An entry for a table that only a transaction has.
	shared_ptr<MerutableTableEntry> MakeEntry(const MeruTable &table);
	void Flush();

	//! Option ON_DUPLICATE of ATTACH.
	OnDuplicate on_duplicate = OnDuplicate::REPLACE;
	//! What it was opened with.
	shared_ptr<MeruOpenSettings> settings;

	void Initialize(bool load_builtin) override;
	string GetCatalogType() override;
	bool SupportsTimeTravel() const override {
		return true;
	}
	optional_idx GetCatalogVersion(ClientContext &context) override;
	string GetDBPath() override;
	bool InMemory() override;
	DatabaseSize GetDatabaseSize(ClientContext &context) override;
	bool HasConflictingAttachOptions(const string &path, const AttachOptions &options) override;
	void OnDetach(ClientContext &context) override;

	optional_ptr<CatalogEntry> CreateSchema(CatalogTransaction transaction, CreateSchemaInfo &info) override;
	optional_ptr<SchemaCatalogEntry> LookupSchema(CatalogTransaction transaction, const EntryLookupInfo &schema_lookup,
												  OnEntryNotFound if_not_found) override;
	void ScanSchemas(ClientContext &context, std::function<void(SchemaCatalogEntry &)> callback) override;
	CatalogLookupBehavior CatalogTypeLookupRule(CatalogType type) const override;
	//! Nothing is refused here: TableDefinition does, also for CREATE TABLE … AS, for which DuckDB does not ask.
	ErrorData SupportsCreateTable(BoundCreateTableInfo &info) override;

	PhysicalOperator &PlanCreateTableAs(ClientContext &context, PhysicalPlanGenerator &planner, LogicalCreateTable &op,
										PhysicalOperator &plan) override;
	PhysicalOperator &PlanInsert(ClientContext &context, PhysicalPlanGenerator &planner, LogicalInsert &op,
								 optional_ptr<PhysicalOperator> plan) override;
	PhysicalOperator &PlanDelete(ClientContext &context, PhysicalPlanGenerator &planner, LogicalDelete &op,
								 PhysicalOperator &plan) override;
	PhysicalOperator &PlanUpdate(ClientContext &context, PhysicalPlanGenerator &planner, LogicalUpdate &op,
								 PhysicalOperator &plan) override;
	PhysicalOperator &PlanMergeInto(ClientContext &context, PhysicalPlanGenerator &planner, LogicalMergeInto &op,
									PhysicalOperator &plan) override;
	unique_ptr<LogicalOperator> BindCreateIndex(Binder &binder, CreateStatement &stmt, TableCatalogEntry &table,
												unique_ptr<LogicalOperator> plan) override;
	unique_ptr<LogicalOperator> BindAlterAddIndex(Binder &binder, TableCatalogEntry &table_entry,
												  unique_ptr<LogicalOperator> plan,
												  unique_ptr<CreateIndexInfo> create_info,
												  unique_ptr<AlterTableInfo> alter_info) override;

  private:
	void DropSchema(ClientContext &context, DropInfo &info) override;
	//! The table of an id as the engine has it now; without an entry where there is none any more. Under the lock.
	MerutableTableState Look(uint64_t id);

	shared_ptr<MeruDatabase> database;
	//! As it was written in ATTACH.
	string attached_path;
	unique_ptr<MerutableSchemaEntry> schema;
	mutex lock;
	//! What was found last, and the engine's state in which it was found.
	shared_ptr<const MerutableTables> current;
	uint64_t engine_state = 0;
};

} // namespace duckdb
