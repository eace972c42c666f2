//! An attached database directory as DuckDB sees it: one schema, "main", with at most one table.

#pragma once

#include "common/snapshot.hpp"
#include "duckdb/catalog/catalog.hpp"

namespace duckdb {
class MerutableSchemaEntry;
class MerutableTableEntry;

//! Drops a table that was created a moment ago and stayed empty, because what should have filled it failed. A table
//! that somebody else wrote to meanwhile stays. Never throws: what goes wrong is in the log of the instance.
void DropIfEmpty(DatabaseInstance &instance, const shared_ptr<MeruDatabase> &database) noexcept;

//! The table's entry, or none, and a number that no other state of the catalog has.
struct MerutableTableState {
	shared_ptr<MerutableTableEntry> entry;
	idx_t version = 0;
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
	//! What the engine has now, whoever made it. An entry lives as long as somebody holds it.
	MerutableTableState CurrentTable();
	//! The same for a schema that was read already, with a snapshot.
	MerutableTableState TableFor(const MeruTable &table);
	void Flush();

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
	//! Makes a table, or none, the current one. Under the lock.
	MerutableTableState Install(optional_ptr<const MeruTable> table);

	shared_ptr<MeruDatabase> database;
	//! As it was written in ATTACH.
	string attached_path;
	unique_ptr<MerutableSchemaEntry> schema;
	mutex lock;
	//! What was found last, and the engine's state in which it was found.
	MerutableTableState current;
	uint64_t engine_state = 0;
	bool known = false;
};

} // namespace duckdb
