#include "catalog/historic_tables.hpp"

#include "catalog/merutable_table_entry.hpp"
#include "common/table_version.hpp"
#include "duckdb/common/string_util.hpp"
#include "duckdb/planner/tableref/bound_at_clause.hpp"

namespace duckdb {

shared_ptr<MerutableTableEntry> HistoricTables::Lookup(ClientContext &context, const MerutableTableEntry &current,
													   const shared_ptr<MeruDatabase> &database,
													   const BoundAtClause &at) {
	auto unit = StringUtil::Upper(at.Unit());
	MeruTableVersion version(context, "AT (" + unit + " => …)", unit, at.GetValue());
	auto key = current.name + "\n" + version.Key();
	lock_guard<mutex> guard(lock);
	auto found = entries.find(key);
	if (found != entries.end()) {
		return found->second;
	}
	auto snapshot = version.Acquire(database);
	// The table may have had another name; here it goes by the one that it was asked for.
	auto table = snapshot->Table();
	table.name = current.name;
	auto entry = MerutableTableEntry::Create(current.catalog, current.schema, table,
											 make_shared_ptr<MeruSnapshotLease>(std::move(snapshot)));
	entries[key] = entry;
	return entry;
}

void HistoricTables::End() noexcept {
	lock_guard<mutex> guard(lock);
	for (auto &entry : entries) {
		entry.second->Historic()->End();
	}
}

} // namespace duckdb
