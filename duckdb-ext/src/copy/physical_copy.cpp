#include "copy/physical_copy.hpp"

#include "common/snapshot.hpp"

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
	auto database = MeruDatabase::Open(target.path, nullptr);
	auto snapshot = MeruSnapshotRef::Acquire(database);
	if (snapshot) {
		// It may have come, or changed, since the statement was bound.
		auto fits = target.exists ? snapshot->Table().Equals(table) : snapshot->Table().Types() == table.Types();
		if (!fits || snapshot->Table().key != table.key || snapshot->Table().Names() != table.Names()) {
			throw InvalidInputException("COPY: the table in \"%s\" changed while the statement was planned",
										target.path);
		}
		return make_uniq<CopyGlobalState>(std::move(database), false, context);
	}
	auto schema = table.ToEngine();
	MeruCall([&](char **err) { return meru_create_table(database->Get(), schema.Get(), err); });
	return make_uniq<CopyGlobalState>(std::move(database), true, context);
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
