#include "copy/physical_copy.hpp"

#include "common/snapshot.hpp"
#include "duckdb/common/exception/transaction_exception.hpp"

#include <numeric>

namespace duckdb {

namespace {

//! Drops a table that was created a moment ago and stayed empty, because what should have filled it failed. A table
//! that somebody else wrote to meanwhile stays.
void DropIfEmpty(const shared_ptr<MeruDatabase> &database) {
	auto snapshot = MeruSnapshotRef::Acquire(database);
	if (!snapshot || snapshot->Info().live_rows > 0) {
		return;
	}
	snapshot.reset();
	MeruCallIfFound([&](char **err) { return meru_drop_table(database->Get(), err); });
}

bool SameTable(const MeruTable &a, const MeruTable &b) {
	return a.name == b.name && a.key == b.key && a.Names() == b.Names() && a.Types() == b.Types();
}

class CopyGlobalState : public MeruWriteGlobalState {
  public:
	CopyGlobalState(shared_ptr<MeruDatabase> database_p, bool created_table, ClientContext &context)
		: MeruWriteGlobalState(nullptr), database(std::move(database_p)), created_table(created_table) {
		try {
			write = make_shared_ptr<MeruWriteBatch>(database, context);
		} catch (...) {
			Undo();
			throw;
		}
	}
	~CopyGlobalState() override {
		write.reset();
		Undo();
	}

	void Commit() {
		write->Commit();
		created_table = false;
		// What is in memory goes to files, so that whoever looks at the path finds it all there.
		database->Close();
	}

	//! The table at the path is another one than was created here.
	void Disown() {
		created_table = false;
	}

  private:
	void Undo() {
		if (!created_table) {
			return;
		}
		created_table = false;
		try {
			DropIfEmpty(database);
		} catch (std::exception &) { // NOLINT
									 // The statement has failed already, with an error that says more.
		}
	}

	shared_ptr<MeruDatabase> database;
	bool created_table;
};

} // namespace

MerutablePhysicalCopy::MerutablePhysicalCopy(PhysicalPlan &plan, CopyTarget target_p, vector<idx_t> places,
											 idx_t estimated_cardinality)
	: MeruWriteOperator(plan, {LogicalType::BIGINT}, target_p.table, {}, estimated_cardinality),
	  target(std::move(target_p)), places(std::move(places)) {
	columns.resize(table.columns.size());
	std::iota(columns.begin(), columns.end(), 0);
}

string MerutablePhysicalCopy::GetName() const {
	return "MERUTABLE_COPY";
}

InsertionOrderPreservingMap<string> MerutablePhysicalCopy::ParamsToString() const {
	auto result = MeruWriteOperator::ParamsToString();
	result["Path"] = target.path;
	return result;
}

unique_ptr<MeruWriteGlobalState> MerutablePhysicalCopy::Begin(ClientContext &context) const {
	auto database = MeruDatabase::Open(target.path, MeruOpenSettings(context).Get());
	auto created = false;
	if (!MeruSnapshotRef::Acquire(database)) {
		auto schema = table.ToEngine();
		MeruCall([&](char **err) { return meru_create_table(database->Get(), schema.Get(), err); });
		created = true;
	}
	auto result = make_uniq<CopyGlobalState>(database, created, context);
	// The table may have come, or changed, since the statement was bound. Looked at once the change has begun: the
	// engine does not commit one whose table was replaced after that.
	auto snapshot = MeruSnapshotRef::Acquire(database);
	if (!snapshot || !SameTable(snapshot->Table(), table)) {
		result->Disown();
		throw TransactionException("COPY: the table in \"%s\" changed while the statement was planned", target.path);
	}
	return std::move(result);
}

DataChunk &MerutablePhysicalCopy::Prepare(ExecutionContext &context, MeruWriteGlobalState &,
										  MeruWriteLocalState &lstate, DataChunk &input) const {
	auto &rows = lstate.prepared;
	if (rows.ColumnCount() == 0) {
		rows.Initialize(context.client, table.Types());
	}
	rows.Reset();
	rows.ReferenceColumns(input, places);
	rows.SetCardinality(input.size());
	return rows;
}

void MerutablePhysicalCopy::End(ClientContext &, MeruWriteGlobalState &gstate) const {
	gstate.Cast<CopyGlobalState>().Commit();
}

} // namespace duckdb
