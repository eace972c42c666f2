//! The table of an attached database, in one state of its schema.

#pragma once

#include "common/snapshot.hpp"
#include "common/table_schema.hpp"
#include "duckdb/catalog/catalog_entry/table_catalog_entry.hpp"
#include "duckdb/common/shared_ptr.hpp"

namespace duckdb {

class MerutableTableEntry : public TableCatalogEntry, public enable_shared_from_this<MerutableTableEntry> {
  public:
	MerutableTableEntry(Catalog &catalog, SchemaCatalogEntry &schema, CreateTableInfo &info, MeruTable table,
						shared_ptr<MeruSnapshotLease> historic);
	static shared_ptr<MerutableTableEntry> Create(Catalog &catalog, SchemaCatalogEntry &schema, const MeruTable &table,
												  shared_ptr<MeruSnapshotLease> historic = nullptr);

	const MeruTable &Table() const {
		return table;
	}
	//! The snapshot of an older state, NULL where this is the table of today.
	const shared_ptr<MeruSnapshotLease> &Historic() const {
		return historic;
	}
	//! Throws where this is an older state.
	void RequireCurrent() const;

	unique_ptr<BaseStatistics> GetStatistics(ClientContext &context, column_t column_id) override;
	TableFunction GetScanFunction(ClientContext &context, unique_ptr<FunctionData> &bind_data) override;
	TableStorageInfo GetStorageInfo(ClientContext &context) override;
	virtual_column_map_t GetVirtualColumns() const override;
	vector<column_t> GetRowIdColumns() const override;
	//! Has all columns read: rows are written whole.
	void BindUpdateConstraints(Binder &binder, LogicalGet &get, LogicalProjection &proj, LogicalUpdate &update,
							   ClientContext &context) override;

  private:
	MeruTable table;
	shared_ptr<MeruSnapshotLease> historic;
};

} // namespace duckdb
