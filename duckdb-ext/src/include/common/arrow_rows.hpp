//! Rows on their way into the engine: DuckDB's chunks, collected into Arrow arrays of a good size.

#pragma once

#include "common/meru_handle.hpp"
#include "common/table_schema.hpp"
#include "duckdb/common/arrow/arrow.hpp"
#include "duckdb/common/arrow/arrow_appender.hpp"
#include "duckdb/common/types/data_chunk.hpp"

namespace duckdb {

//! Collects chunks of some of a table's columns and hands them to a write. For one thread at a time.
class ArrowRowBuffer {
  public:
	//! columns: places in the table, in the order in which chunks have them.
	ArrowRowBuffer(ClientContext &context, const MeruTable &table, vector<idx_t> columns);
	~ArrowRowBuffer();
	ArrowRowBuffer(const ArrowRowBuffer &) = delete;
	ArrowRowBuffer &operator=(const ArrowRowBuffer &) = delete;

	using flush_t = std::function<void(ArrowArray &rows, const ArrowSchema &schema)>;
	//! Adds a chunk; calls flush with what was collected whenever that is enough for a batch. Throws a
	//! ConstraintException for a NULL in a column that takes none.
	void Append(DataChunk &chunk, const flush_t &flush);
	//! Hands over what is left.
	void Flush(const flush_t &flush);

  private:
	void CheckNulls(DataChunk &chunk) const;
	void Encode(DataChunk &chunk);
	void AppendRange(idx_t from, idx_t to);

	ClientContext &context;
	const MeruTable &table;
	vector<idx_t> columns;
	//! The columns as the appender takes them.
	DataChunk encoded;
	unique_ptr<ArrowAppender> appender;
	idx_t buffered_bytes = 0;
	//! The table's Arrow schema, and the columns asked for as a view of it.
	ArrowSchema full_schema;
	ArrowSchema schema;
	vector<ArrowSchema *> children;
};

} // namespace duckdb
