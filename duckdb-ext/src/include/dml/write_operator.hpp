//! What INSERT, UPDATE, DELETE, COPY TO and CREATE TABLE AS have in common: rows from below go into one atomic change.

#pragma once

#include "common/arrow_rows.hpp"
#include "dml/ordered_blocks.hpp"
#include "duckdb/common/types/column/column_data_collection.hpp"
#include "duckdb/execution/physical_operator.hpp"

namespace duckdb {

//! The change that is being made. Operators add what they need to finish or undo it.
class MeruWriteGlobalState : public GlobalSinkState {
  public:
	explicit MeruWriteGlobalState(shared_ptr<MeruWriteBatch> write) : write(std::move(write)) {
	}

	//! Counts rows that the operator keeps for later, and remembers them for RETURNING.
	void Keep(DataChunk &rows);

	//! Guards what is below, and what operators add.
	mutex lock;
	//! NULL: the rows are not wanted.
	shared_ptr<MeruWriteBatch> write;
	idx_t row_count = 0;
	//! Where many threads bring rows whose order counts.
	unique_ptr<OrderedBlocks> ordered;
	//! For RETURNING.
	unique_ptr<ColumnDataCollection> returned;
};

class MeruWriteLocalState : public LocalSinkState {
  public:
	MeruWriteLocalState(ClientContext &context, const MeruTable &table, vector<idx_t> columns)
		: buffer(context, table, std::move(columns)) {
	}

	ArrowRowBuffer buffer;
	//! The batch that the rows in the buffer belong to.
	idx_t batch = 0;
	//! Where Prepare() may build its rows.
	DataChunk prepared;
};

class MeruWriteOperator : public PhysicalOperator {
  public:
	//! columns: the columns of the table that Prepare() yields.
	MeruWriteOperator(PhysicalPlan &plan, vector<LogicalType> types, MeruTable table, vector<idx_t> columns,
					  idx_t estimated_cardinality);

	MeruTable table;
	vector<idx_t> columns;
	//! Whether the rows written are the result, rather than their count.
	bool return_rows = false;
	//! Whether it matters which of two rows with one key came last.
	bool keep_order = true;
	//! Whether the order is known from the batch that a row belongs to, so that many threads can work all the same.
	bool use_batches = false;
	//! Whether its last row is the statement's. Operators that share a change with others leave that to the last one.
	bool ends_statement = true;

  protected:
	//! Begins the change when the statement starts to run.
	virtual unique_ptr<MeruWriteGlobalState> Begin(ClientContext &context) const = 0;
	//! Whether the rows are keys to delete.
	virtual bool Deletes() const {
		return false;
	}
	//! Makes the rows to write of the rows from below. Called by many threads at once if ParallelSink().
	virtual DataChunk &Prepare(ExecutionContext &context, MeruWriteGlobalState &gstate, MeruWriteLocalState &lstate,
							   DataChunk &input) const;
	//! The rows for RETURNING, given what Prepare() made.
	virtual DataChunk &Returned(MeruWriteLocalState &lstate, DataChunk &rows) const;
	//! After the last row.
	virtual void End(ClientContext &context, MeruWriteGlobalState &gstate) const;

  private:
	//! Hands rows to the engine.
	void Send(MeruWriteGlobalState &gstate, const MeruWriteLocalState &lstate, ArrowArray &rows,
			  const ArrowSchema &schema) const;
	void Flush(MeruWriteGlobalState &gstate, MeruWriteLocalState &lstate) const;

  public:
	bool IsSink() const override {
		return true;
	}
	bool ParallelSink() const override {
		return !keep_order || use_batches;
	}
	bool SinkOrderDependent() const override {
		return keep_order && !use_batches;
	}
	OperatorPartitionInfo RequiredPartitionInfo() const override {
		return use_batches ? OperatorPartitionInfo::BatchIndex() : OperatorPartitionInfo();
	}
	SinkNextBatchType NextBatch(ExecutionContext &context, OperatorSinkNextBatchInput &input) const override;
	bool IsSource() const override {
		return true;
	}
	unique_ptr<GlobalSinkState> GetGlobalSinkState(ClientContext &context) const override;
	unique_ptr<LocalSinkState> GetLocalSinkState(ExecutionContext &context) const override;
	SinkResultType Sink(ExecutionContext &context, DataChunk &chunk, OperatorSinkInput &input) const override;
	SinkCombineResultType Combine(ExecutionContext &context, OperatorSinkCombineInput &input) const override;
	SinkFinalizeType Finalize(Pipeline &pipeline, Event &event, ClientContext &context,
							  OperatorSinkFinalizeInput &input) const override;
	unique_ptr<GlobalSourceState> GetGlobalSourceState(ClientContext &context) const override;
	SourceResultType GetDataInternal(ExecutionContext &context, DataChunk &chunk,
									 OperatorSourceInput &input) const override;
	InsertionOrderPreservingMap<string> ParamsToString() const override;
};

} // namespace duckdb
