#include "common/arrow_batches.hpp"

#include "duckdb/common/exception.hpp"

namespace duckdb {

ArrowColumns::ArrowColumns(ClientContext &context, ArrowSchema &schema_p) {
	schema.arrow_schema = schema_p;
	schema_p.release = nullptr;
	ArrowTableFunction::PopulateArrowTableSchema(context, table, schema.arrow_schema);
	types = table.GetTypes();
}

ArrowBatch::ArrowBatch(ClientContext &context, const ArrowColumns &columns, unique_ptr<ArrowArrayWrapper> batch)
	: columns(columns), state(std::move(batch), context) {
}

bool ArrowBatch::Next(DataChunk &output) {
	auto length = NumericCast<idx_t>(state.chunk->arrow_array.length);
	if (state.chunk_offset >= length) {
		return false;
	}
	auto count = MinValue<idx_t>(STANDARD_VECTOR_SIZE, length - state.chunk_offset);
	output.Reset();
	output.SetCardinality(count);
	ArrowTableFunction::ArrowToDuckDB(state, columns.Get(), output);
	state.chunk_offset += count;
	return true;
}

ArrowBatchStream::ArrowBatchStream() {
	memset(&stream, 0, sizeof(stream));
}

ArrowBatchStream::~ArrowBatchStream() {
	if (stream.release) {
		stream.release(&stream);
	}
}

void ArrowBatchStream::ThrowLastError() {
	auto message = stream.get_last_error ? stream.get_last_error(&stream) : nullptr;
	throw IOException("%s", message ? string(message) : string("reading from the engine failed"));
}

unique_ptr<ArrowColumns> ArrowBatchStream::Columns(ClientContext &context) {
	ArrowSchema schema;
	memset(&schema, 0, sizeof(schema));
	if (stream.get_schema(&stream, &schema) != 0) {
		ThrowLastError();
	}
	return make_uniq<ArrowColumns>(context, schema);
}

unique_ptr<ArrowArrayWrapper> ArrowBatchStream::Next() {
	auto result = make_uniq<ArrowArrayWrapper>();
	if (stream.get_next(&stream, &result->arrow_array) != 0) {
		ThrowLastError();
	}
	if (!result->arrow_array.release) {
		return nullptr;
	}
	return result;
}

} // namespace duckdb
