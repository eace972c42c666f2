//! Reads the rows of a snapshot that are only in memory, in the place of a file.

#pragma once

#include "common/arrow_batches.hpp"
#include "common/snapshot.hpp"
#include "duckdb/common/multi_file/base_file_reader.hpp"

namespace duckdb {
struct OverlayScanState;

//! Filters that were pushed down are applied here: the plan above no longer has them. The local state that DuckDB hands
//! around is the Parquet reader's, so the state of each thread is kept here, found by the address of that.
class OverlayReader : public BaseFileReader {
  public:
	OverlayReader(OpenFileInfo file, shared_ptr<MeruSnapshotRef> snapshot);
	~OverlayReader() override;

	void AddVirtualColumn(column_t virtual_column_id) override;
	void PrepareReader(ClientContext &context, GlobalTableFunctionState &) override;
	bool TryInitializeScan(ClientContext &context, GlobalTableFunctionState &gstate,
						   LocalTableFunctionState &lstate) override;
	AsyncResult Scan(ClientContext &context, GlobalTableFunctionState &global_state,
					 LocalTableFunctionState &local_state, DataChunk &chunk) override;
	double GetProgressInFile(ClientContext &context) override;
	string GetReaderType() const override;

  private:
	OverlayScanState &StateOf(LocalTableFunctionState &lstate);
	void FillColumns(OverlayScanState &state, DataChunk &chunk);
	idx_t ApplyFilters(OverlayScanState &state, DataChunk &chunk);

	shared_ptr<MeruSnapshotRef> snapshot;
	idx_t table_columns;
	ArrowBatchStream stream;
	unique_ptr<ArrowColumns> arrow_columns;
	//! Rows given out in batches. Under DuckDB's lock of the whole scan.
	idx_t rows_started = 0;
	atomic<idx_t> rows_read{0};
	mutex states_lock;
	unordered_map<LocalTableFunctionState *, unique_ptr<OverlayScanState>> states;
};

} // namespace duckdb
