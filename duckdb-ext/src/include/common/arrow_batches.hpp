//! Rows on their way out of the engine: Arrow batches into DuckDB's vectors.

#pragma once

#include "common/meru_handle.hpp"
#include "duckdb/common/arrow/arrow_wrapper.hpp"
#include "duckdb/common/types/data_chunk.hpp"
#include "duckdb/function/table/arrow.hpp"

namespace duckdb {

//! How the columns of an Arrow struct become vectors. Shared by threads.
class ArrowColumns {
  public:
	//! Takes the schema.
	ArrowColumns(ClientContext &context, ArrowSchema &schema);

	const arrow_column_map_t &Get() const {
		return table.GetColumns();
	}
	const vector<LogicalType> &Types() const {
		return types;
	}

  private:
	ArrowSchemaWrapper schema;
	ArrowTableSchema table;
	vector<LogicalType> types;
};

//! One batch, given out a vector's worth at a time.
class ArrowBatch {
  public:
	ArrowBatch(ClientContext &context, const ArrowColumns &columns, unique_ptr<ArrowArrayWrapper> batch);

	//! Fills output, whose types are those of the columns, with the next rows. False at the end.
	bool Next(DataChunk &output);

  private:
	const ArrowColumns &columns;
	ArrowScanLocalState state;
};

//! A stream of the engine. For one thread at a time.
class ArrowBatchStream {
  public:
	ArrowBatchStream();
	~ArrowBatchStream();
	ArrowBatchStream(const ArrowBatchStream &) = delete;
	ArrowBatchStream &operator=(const ArrowBatchStream &) = delete;

	//! For the engine's functions to fill.
	ArrowArrayStream &Out() {
		return stream;
	}
	unique_ptr<ArrowColumns> Columns(ClientContext &context);
	//! NULL at the end.
	unique_ptr<ArrowArrayWrapper> Next();

  private:
	[[noreturn]] void ThrowLastError();

	ArrowArrayStream stream;
};

} // namespace duckdb
