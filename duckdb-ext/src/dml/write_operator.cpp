#include "dml/write_operator.hpp"

namespace duckdb {

namespace {

class WriteSourceState : public GlobalSourceState {
  public:
	ColumnDataScanState scan;
};

} // namespace

MeruWriteOperator::MeruWriteOperator(PhysicalPlan &plan, vector<LogicalType> types, MeruTable table,
									 vector<idx_t> columns, idx_t estimated_cardinality)
	: PhysicalOperator(plan, PhysicalOperatorType::EXTENSION, std::move(types), estimated_cardinality),
	  table(std::move(table)), columns(std::move(columns)) {
}

void MeruWriteGlobalState::Keep(DataChunk &rows) {
	lock_guard<mutex> guard(lock);
	row_count += rows.size();
	if (returned) {
		returned->Append(rows);
	}
}

DataChunk &MeruWriteOperator::Prepare(ExecutionContext &, MeruWriteGlobalState &, MeruWriteLocalState &,
									  DataChunk &input) const {
	return input;
}

DataChunk &MeruWriteOperator::Returned(MeruWriteLocalState &, DataChunk &rows) const {
	return rows;
}

void MeruWriteOperator::Send(MeruWriteGlobalState &gstate, const MeruWriteLocalState &lstate, ArrowArray &rows,
							 const ArrowSchema &schema) const {
	if (!ParallelSink()) {
		if (Deletes()) {
			gstate.write->Delete(rows, schema);
		} else {
			gstate.write->Put(rows, schema);
		}
		return;
	}
	// Encoding is what takes the time. One thread at a time may append what was encoded.
	auto block = Deletes() ? gstate.write->PrepareDelete(rows, schema) : gstate.write->PreparePut(rows, schema);
	if (gstate.ordered) {
		gstate.ordered->Add(lstate.batch, std::move(block));
		gstate.ordered->AppendReady(*gstate.write);
		return;
	}
	gstate.write->Append(std::move(block));
}

void MeruWriteOperator::Flush(MeruWriteGlobalState &gstate, MeruWriteLocalState &lstate) const {
	lstate.buffer.Flush([&](ArrowArray &array, const ArrowSchema &schema) { Send(gstate, lstate, array, schema); });
}

void MeruWriteOperator::End(ClientContext &, MeruWriteGlobalState &) const {
}

unique_ptr<GlobalSinkState> MeruWriteOperator::GetGlobalSinkState(ClientContext &context) const {
	auto result = Begin(context);
	if (return_rows) {
		result->returned = make_uniq<ColumnDataCollection>(context, types);
	}
	if (use_batches && result->write) {
		result->ordered = make_uniq<OrderedBlocks>();
	}
	return std::move(result);
}

unique_ptr<LocalSinkState> MeruWriteOperator::GetLocalSinkState(ExecutionContext &context) const {
	return make_uniq<MeruWriteLocalState>(context.client, table, columns);
}

SinkResultType MeruWriteOperator::Sink(ExecutionContext &context, DataChunk &chunk, OperatorSinkInput &input) const {
	auto &gstate = input.global_state.Cast<MeruWriteGlobalState>();
	auto &lstate = input.local_state.Cast<MeruWriteLocalState>();
	if (!gstate.write) {
		return SinkResultType::FINISHED;
	}
	if (gstate.ordered) {
		auto &place = lstate.partition_info;
		lstate.batch = place.batch_index.GetIndex();
		gstate.ordered->Advance(place.min_batch_index.GetIndex(), *gstate.write);
		if (gstate.ordered->MustWait(lstate.batch, input.interrupt_state)) {
			return SinkResultType::BLOCKED;
		}
	}
	auto &rows = Prepare(context, gstate, lstate, chunk);
	if (rows.size() == 0) {
		return SinkResultType::NEED_MORE_INPUT;
	}
	lstate.buffer.Append(rows,
						 [&](ArrowArray &array, const ArrowSchema &schema) { Send(gstate, lstate, array, schema); });
	gstate.Keep(gstate.returned ? Returned(lstate, rows) : rows);
	return SinkResultType::NEED_MORE_INPUT;
}

SinkCombineResultType MeruWriteOperator::Combine(ExecutionContext &, OperatorSinkCombineInput &input) const {
	auto &gstate = input.global_state.Cast<MeruWriteGlobalState>();
	auto &lstate = input.local_state.Cast<MeruWriteLocalState>();
	Flush(gstate, lstate);
	if (gstate.ordered) {
		gstate.ordered->Advance(lstate.partition_info.min_batch_index.GetIndex(), *gstate.write);
	}
	return SinkCombineResultType::FINISHED;
}

SinkNextBatchType MeruWriteOperator::NextBatch(ExecutionContext &, OperatorSinkNextBatchInput &input) const {
	Flush(input.global_state.Cast<MeruWriteGlobalState>(), input.local_state.Cast<MeruWriteLocalState>());
	return SinkNextBatchType::READY;
}

SinkFinalizeType MeruWriteOperator::Finalize(Pipeline &, Event &, ClientContext &context,
											 OperatorSinkFinalizeInput &input) const {
	auto &gstate = input.global_state.Cast<MeruWriteGlobalState>();
	if (gstate.ordered) {
		gstate.ordered->Advance(DConstants::INVALID_INDEX, *gstate.write);
	}
	End(context, gstate);
	if (ends_statement && gstate.write) {
		gstate.write->EndStatement();
	}
	return SinkFinalizeType::READY;
}

unique_ptr<GlobalSourceState> MeruWriteOperator::GetGlobalSourceState(ClientContext &) const {
	auto result = make_uniq<WriteSourceState>();
	auto &gstate = sink_state->Cast<MeruWriteGlobalState>();
	if (gstate.returned) {
		gstate.returned->InitializeScan(result->scan);
	}
	return std::move(result);
}

SourceResultType MeruWriteOperator::GetDataInternal(ExecutionContext &, DataChunk &chunk,
													OperatorSourceInput &input) const {
	auto &gstate = sink_state->Cast<MeruWriteGlobalState>();
	auto &state = input.global_state.Cast<WriteSourceState>();
	if (gstate.returned) {
		gstate.returned->Scan(state.scan, chunk);
		return chunk.size() == 0 ? SourceResultType::FINISHED : SourceResultType::HAVE_MORE_OUTPUT;
	}
	chunk.SetCardinality(1);
	chunk.SetValue(0, 0, Value::BIGINT(NumericCast<int64_t>(gstate.row_count)));
	return SourceResultType::FINISHED;
}

InsertionOrderPreservingMap<string> MeruWriteOperator::ParamsToString() const {
	InsertionOrderPreservingMap<string> result;
	result["Table"] = table.name;
	return result;
}

} // namespace duckdb
