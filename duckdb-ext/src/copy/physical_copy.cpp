#include "copy/physical_copy.hpp"

#include "common/snapshot.hpp"
#include "duckdb/common/exception/transaction_exception.hpp"

#include <exception>
#include <numeric>
#include <thread>

namespace duckdb {

namespace {

bool SameTable(const MeruTable &a, const MeruTable &b) {
	return a.name == b.name && a.key == b.key && a.Names() == b.Names() && a.Types() == b.Types() &&
		   a.checks == b.checks;
}

//! The commit, which sorts and writes what is large, runs beside DuckDB's threads: the one that waits for a task to end
//! would ask for it all the time, and take a processor from the engine.
class CopyGlobalState : public MeruWriteGlobalState {
  public:
	//! existing is a handle on the table, NULL where it is created.
	CopyGlobalState(shared_ptr<MeruDatabase> database, shared_ptr<MeruDatabase> existing,
					shared_ptr<MeruWriteBatch> write)
		: MeruWriteGlobalState(std::move(write)), database(std::move(database)), existing(std::move(existing)) {
	}
	~CopyGlobalState() override {
		if (committer.joinable()) {
			committer.join();
		}
	}

	//! Begins, and calls back at the end.
	void StartCommit(InterruptState interrupt_state) {
		committer = std::thread([this, interrupt_state]() {
			try {
				write->Commit();
				// What is in memory goes to files, so that whoever looks at the path finds it all there.
				if (existing) {
					existing->Close();
				}
				database->Close();
			} catch (...) {
				error = std::current_exception();
			}
			interrupt_state.Callback();
		});
	}
	bool Started() const {
		return committer.joinable();
	}
	//! Throws what went wrong.
	void EndCommit() {
		committer.join();
		if (error) {
			std::rethrow_exception(error);
		}
	}

  private:
	shared_ptr<MeruDatabase> database;
	shared_ptr<MeruDatabase> existing;
	std::thread committer;
	std::exception_ptr error;
};

} // namespace

MerutablePhysicalCopy::MerutablePhysicalCopy(PhysicalPlan &plan, ClientContext &context, CopyTarget target_p,
											 vector<idx_t> places, idx_t estimated_cardinality)
	: MeruWriteOperator(plan, {LogicalType::BIGINT}, target_p.table, {}, estimated_cardinality),
	  target(std::move(target_p)), checks(context, table), places(std::move(places)) {
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
	MeruOpenSettings settings(context);
	settings.AddSecrets(context, target.path);
	auto database = MeruDatabase::Open(context, target.path, settings);
	auto existing = database->OpenTable(table.name);
	if (!existing) {
		auto schema = table.ToEngine();
		auto write = make_shared_ptr<MeruWriteBatch>(database, context, schema.Get(), false);
		return make_uniq<CopyGlobalState>(std::move(database), nullptr, std::move(write));
	}
	auto write = make_shared_ptr<MeruWriteBatch>(existing, context);
	// The table may have come, or changed, since the statement was bound. Looked at once the change has begun: the
	// engine does not commit one whose table was replaced after that.
	auto snapshot = MeruSnapshotRef::Acquire(existing);
	if (!snapshot || !SameTable(snapshot->Table(), table)) {
		throw TransactionException("COPY: the table in \"%s\" changed while the statement was planned", target.path);
	}
	return make_uniq<CopyGlobalState>(std::move(database), std::move(existing), std::move(write));
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
	checks.Verify(context.client, rows);
	return rows;
}

SinkFinalizeType MerutablePhysicalCopy::Finalize(Pipeline &pipeline, Event &event, ClientContext &context,
												 OperatorSinkFinalizeInput &input) const {
	auto &gstate = input.global_state.Cast<CopyGlobalState>();
	if (!gstate.Started()) {
		MeruWriteOperator::Finalize(pipeline, event, context, input);
		gstate.StartCommit(input.interrupt_state);
		return SinkFinalizeType::BLOCKED;
	}
	gstate.EndCommit();
	return SinkFinalizeType::READY;
}

} // namespace duckdb
