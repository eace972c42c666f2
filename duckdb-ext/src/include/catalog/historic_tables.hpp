//! The older states of tables that one transaction reads: SELECT … FROM t AT (VERSION => …).

#pragma once

#include "common/snapshot.hpp"
#include "duckdb/common/mutex.hpp"
#include "duckdb/common/unordered_map.hpp"

namespace duckdb {
class BoundAtClause;
class ClientContext;
class MerutableTableEntry;

//! Each state is looked up once, so that a transaction sees the same one every time, and kept until the transaction is
//! over. Used by all threads of a query.
class HistoricTables {
  public:
	//! The entry of an older state of a table, with the columns that it had then. current is its entry now. Throws
	//! where there is no such state.
	shared_ptr<MerutableTableEntry> Lookup(ClientContext &context, const MerutableTableEntry &current,
										   const shared_ptr<MeruDatabase> &database, const BoundAtClause &at);
	//! Gives the snapshots back. Entries that are still in use stay.
	void End() noexcept;

  private:
	mutex lock;
	unordered_map<string, shared_ptr<MerutableTableEntry>> entries;
};

} // namespace duckdb
