#include "scan/overlay_reader.hpp"

#include "scan/column_conversion.hpp"
#include "duckdb/common/multi_file/multi_file_reader.hpp"
#include "duckdb/execution/expression_executor.hpp"
#include "duckdb/planner/table_filter_state.hpp"
#include "duckdb/storage/table/column_segment.hpp"
#include "scan/row_columns.hpp"

namespace duckdb {

//! What a thread works with. A filter belongs to a column of the chunk.
struct OverlayScanState {
	explicit OverlayScanState(ClientContext &context, const OverlayReader &reader) {
		if (!reader.filters) {
			return;
		}
		for (auto &entry : reader.filters->filters) {
			filters.emplace_back(entry.first, TableFilterState::Initialize(context, *entry.second));
		}
		for (auto &entry : reader.expression_map) {
			expressions[entry.first] = make_uniq<ExpressionExecutor>(context, *entry.second);
		}
	}

	//! The piece that is read, and its batch at hand.
	idx_t piece = 0;
	unique_ptr<ArrowBatchStream> stream;
	unique_ptr<ArrowBatch> batch;
	//! The columns as the engine gives them.
	DataChunk raw;
	vector<pair<idx_t, unique_ptr<TableFilterState>>> filters;
	//! By column of the table: what is evaluated before its filter.
	unordered_map<idx_t, unique_ptr<ExpressionExecutor>> expressions;
	SelectionVector sel;
};

OverlayReader::OverlayReader(OpenFileInfo file, shared_ptr<MeruSnapshotRef> snapshot_p)
	: BaseFileReader(std::move(file)), snapshot(std::move(snapshot_p)),
	  table_columns(snapshot->Table().columns.size()) {
	for (auto &column : snapshot->Table().columns) {
		auto definition = ColumnConversion::Define(column, StoredForm::ArrowType(column.type));
		columns.push_back(std::move(definition));
	}
	// Behind them the engine's sequence number, which is column table_columns there too.
	MultiFileColumnDefinition seq(RowColumns::SEQ_NAME, LogicalType::BIGINT);
	seq.identifier = Value::INTEGER(RowColumns::SEQ_FIELD_ID);
	columns.push_back(std::move(seq));
}

OverlayReader::~OverlayReader() {
}

string OverlayReader::GetReaderType() const {
	return "merutable";
}

void OverlayReader::AddVirtualColumn(column_t virtual_column_id) {
	// The column itself was added to columns by the caller: any beyond the engine's is a row number.
	if (virtual_column_id != MultiFileReader::COLUMN_IDENTIFIER_FILE_ROW_NUMBER) {
		throw NotImplementedException("Rows in memory have no virtual column %llu", virtual_column_id);
	}
}

void OverlayReader::Read(shared_ptr<MeruSnapshotRef> part, shared_ptr<ScanCounters> counters_p) {
	snapshot = std::move(part);
	counters = std::move(counters_p);
}

void OverlayReader::PrepareReader(ClientContext &context, GlobalTableFunctionState &) {
	for (idx_t i = 0; i < column_ids.size(); i++) {
		idx_t id = column_ids[MultiFileLocalIndex(i)];
		if (id < table_columns) {
			wanted.push_back(NumericCast<uint32_t>(id));
		} else if (id == table_columns) {
			with_seq = true;
		} else {
			with_number = true;
		}
	}
	if (wanted.empty()) {
		// Only counted: some column must tell how many rows there are.
		wanted.push_back(NumericCast<uint32_t>(snapshot->Table().key[0]));
	}
	// The engine has these behind the table's columns.
	if (with_seq) {
		wanted.push_back(NumericCast<uint32_t>(table_columns));
	}
	if (with_number) {
		wanted.push_back(NumericCast<uint32_t>(table_columns + 1));
	}
	MeruCall([&](char **err) { return meru_snapshot_overlay_pieces(snapshot->Get(), &piece_count, err); });
	if (piece_count > 0) {
		ArrowBatchStream stream;
		OpenPiece(0, stream);
		arrow_columns = stream.Columns(context);
	}
}

void OverlayReader::OpenPiece(idx_t piece, ArrowBatchStream &stream) {
	MeruCall([&](char **err) {
		return meru_snapshot_overlay_piece(snapshot->Get(), piece, wanted.data(), wanted.size(), &stream.Out(), err);
	});
}

OverlayScanState &OverlayReader::StateOf(LocalTableFunctionState &lstate) {
	lock_guard<mutex> guard(states_lock);
	auto entry = states.find(&lstate);
	if (entry == states.end()) {
		throw InvalidInputException("Rows in memory are read by a thread that has no state");
	}
	return *entry->second;
}

bool OverlayReader::TryInitializeScan(ClientContext &context, GlobalTableFunctionState &,
									  LocalTableFunctionState &lstate) {
	if (next_piece >= piece_count) {
		return false;
	}
	lock_guard<mutex> guard(states_lock);
	auto &state = states[&lstate];
	if (!state) {
		state = make_uniq<OverlayScanState>(context, *this);
		state->raw.Initialize(context, arrow_columns->Types());
	}
	state->piece = next_piece++;
	return true;
}

void OverlayReader::PrepareScan(ClientContext &, GlobalTableFunctionState &, LocalTableFunctionState &lstate) {
	auto &state = StateOf(lstate);
	state.batch.reset();
	state.stream = make_uniq<ArrowBatchStream>();
	OpenPiece(state.piece, *state.stream);
}

//! Fills raw with the next rows of the piece. False at its end.
bool OverlayReader::NextRows(ClientContext &context, OverlayScanState &state) {
	while (!state.batch || !state.batch->Next(state.raw)) {
		auto batch = state.stream ? state.stream->Next() : nullptr;
		if (!batch) {
			state.batch.reset();
			state.stream.reset();
			return false;
		}
		state.batch = make_uniq<ArrowBatch>(context, *arrow_columns, std::move(batch));
	}
	return true;
}

void OverlayReader::FillColumns(OverlayScanState &state, DataChunk &chunk) {
	idx_t raw_index = 0;
	for (idx_t i = 0; i < column_ids.size(); i++) {
		idx_t id = column_ids[MultiFileLocalIndex(i)];
		if (id >= table_columns) {
			auto last = state.raw.ColumnCount() - 1;
			chunk.data[i].Reference(state.raw.data[id == table_columns && with_number ? last - 1 : last]);
			continue;
		}
		auto &raw = state.raw.data[raw_index++];
		auto expression = state.expressions.find(id);
		if (expression == state.expressions.end()) {
			chunk.data[i].Reference(raw);
			continue;
		}
		DataChunk input;
		input.InitializeEmpty({raw.GetType()});
		input.data[0].Reference(raw);
		input.SetCardinality(state.raw.size());
		expression->second->ExecuteExpression(input, chunk.data[i]);
	}
}

idx_t OverlayReader::ApplyFilters(OverlayScanState &state, DataChunk &chunk) {
	auto count = chunk.size();
	idx_t approved = count;
	state.sel.Initialize(nullptr);
	for (auto &entry : state.filters) {
		if (approved == 0) {
			break;
		}
		auto &vector = chunk.data[entry.first];
		UnifiedVectorFormat format;
		vector.ToUnifiedFormat(count, format);
		ColumnSegment::FilterSelection(state.sel, vector, format, *filters->filters.at(entry.first), *entry.second,
									   count, approved);
	}
	return approved;
}

AsyncResult OverlayReader::Scan(ClientContext &context, GlobalTableFunctionState &,
								LocalTableFunctionState &local_state, DataChunk &chunk) {
	chunk.Reset();
	auto &state = StateOf(local_state);
	if (!NextRows(context, state)) {
		return SourceResultType::FINISHED;
	}
	auto count = state.raw.size();
	chunk.SetCardinality(count);
	FillColumns(state, chunk);
	auto approved = ApplyFilters(state, chunk);
	if (approved < count) {
		chunk.Slice(state.sel, approved);
	}
	rows_read += count;
	if (counters) {
		counters->memory_rows += count;
	}
	return SourceResultType::HAVE_MORE_OUTPUT;
}

double OverlayReader::GetProgressInFile(ClientContext &) {
	auto total = snapshot->Info().memory_rows;
	return total == 0 ? 100.0 : 100.0 * static_cast<double>(rows_read.load()) / static_cast<double>(total);
}

} // namespace duckdb
