//! Reads the rows of a snapshot that are only in memory, in the place of a file.

#pragma once

#include "common/arrow_batches.hpp"
#include "common/snapshot.hpp"
#include "duckdb/common/multi_file/base_file_reader.hpp"
#include "scan/scan_counters.hpp"

namespace duckdb {
struct OverlayScanState;

//! Rows come in pieces, of which each thread reads one at a time. Filters that were pushed down are applied here: the
//! plan above no longer has them. The local state that DuckDB hands around is the Parquet reader's, so the state of
//! each thread is kept here, found by the address of that.
class OverlayReader : public BaseFileReader {
  public:
	OverlayReader(OpenFileInfo file, shared_ptr<MeruSnapshotRef> snapshot);
	~OverlayReader() override;

	//! The part of the snapshot to read, if filters narrowed it. To be called before PrepareReader.
	void Read(shared_ptr<MeruSnapshotRef> part, shared_ptr<ScanCounters> counters);
	void AddVirtualColumn(column_t virtual_column_id) override;
	void PrepareReader(ClientContext &context, GlobalTableFunctionState &) override;
	bool TryInitializeScan(ClientContext &context, GlobalTableFunctionState &gstate,
						   LocalTableFunctionState &lstate) override;
	void PrepareScan(ClientContext &context, GlobalTableFunctionState &gstate,
					 LocalTableFunctionState &lstate) override;
	AsyncResult Scan(ClientContext &context, GlobalTableFunctionState &global_state,
					 LocalTableFunctionState &local_state, DataChunk &chunk) override;
	double GetProgressInFile(ClientContext &context) override;
	string GetReaderType() const override;

  private:
	OverlayScanState &StateOf(LocalTableFunctionState &lstate);
	void OpenPiece(idx_t piece, ArrowBatchStream &stream);
	bool NextRows(ClientContext &context, OverlayScanState &state);
	void FillColumns(OverlayScanState &state, DataChunk &chunk);
	idx_t ApplyFilters(OverlayScanState &state, DataChunk &chunk);

	shared_ptr<MeruSnapshotRef> snapshot;
	shared_ptr<ScanCounters> counters;
	idx_t table_columns;
	//! The engine's columns that are read.
	vector<uint32_t> wanted;
	bool with_seq = false;
	bool with_number = false;
	unique_ptr<ArrowColumns> arrow_columns;
	uintptr_t piece_count = 0;
	//! The piece that the next thread reads. Under DuckDB's lock of the whole scan.
	idx_t next_piece = 0;
	atomic<idx_t> rows_read{0};
	mutex states_lock;
	unordered_map<LocalTableFunctionState *, unique_ptr<OverlayScanState>> states;
};

} // namespace duckdb
