#include "common/arrow_rows.hpp"

#include "common/stored_form.hpp"
#include "duckdb/common/exception.hpp"
#include "duckdb/common/string_util.hpp"
#include "duckdb/common/vector_operations/vector_operations.hpp"
#include "duckdb/function/table/arrow/arrow_type_info.hpp"
#include "duckdb/main/client_context.hpp"

namespace duckdb {

namespace {

//! One call into the engine per batch costs nothing that matters at this size.
constexpr idx_t BATCH_ROWS = 16384;
//! Arrow's strings have 32-bit offsets, and a batch is in memory twice for a moment.
constexpr idx_t BATCH_BYTES = idx_t(64) << 20;

//! Whether values differ in size, so that rows must be looked at to know how much they take.
bool HasVariableSize(const LogicalType &type) {
	switch (type.InternalType()) {
	case PhysicalType::VARCHAR:
	case PhysicalType::STRUCT:
	case PhysicalType::LIST:
	case PhysicalType::ARRAY:
		return true;
	default:
		return false;
	}
}

//! About how many bytes values from from to from + count - 1 take.
idx_t ValueBytes(const RecursiveUnifiedVectorFormat &format, idx_t from, idx_t count) {
	auto physical = format.logical_type.InternalType();
	if (!HasVariableSize(format.logical_type)) {
		return count * GetTypeIdSize(physical);
	}
	idx_t result = 0;
	auto &unified = format.unified;
	for (idx_t i = from; i < from + count; i++) {
		auto index = unified.sel->get_index(i);
		if (!unified.validity.RowIsValid(index)) {
			if (physical == PhysicalType::ARRAY) {
				// A NULL has all elements in Arrow.
				auto &child = ArrayType::GetChildType(format.logical_type);
				result += ArrayType::GetSize(format.logical_type) * GetTypeIdSize(child.InternalType());
			}
			continue;
		}
		if (physical == PhysicalType::VARCHAR) {
			result += UnifiedVectorFormat::GetData<string_t>(unified)[index].GetSize();
		} else if (physical == PhysicalType::LIST) {
			auto &list = UnifiedVectorFormat::GetData<list_entry_t>(unified)[index];
			result += sizeof(int32_t) + ValueBytes(format.children[0], list.offset, list.length);
		} else if (physical == PhysicalType::ARRAY) {
			auto size = ArrayType::GetSize(format.logical_type);
			result += ValueBytes(format.children[0], index * size, size);
		} else {
			for (auto &child : format.children) {
				result += ValueBytes(child, i, 1);
			}
		}
	}
	return result;
}

//! Fixed types only, in the plain layouts: the schema that goes with the arrays is the engine's.
ClientProperties AppenderProperties() {
	ClientProperties result;
	result.arrow_offset_size = ArrowOffsetSize::REGULAR;
	result.arrow_output_version = ArrowFormatVersion::V1_0;
	result.produce_arrow_string_view = false;
	result.arrow_lossless_conversion = true;
	return result;
}

//! Memory of an array that was converted here.
struct FixedBytes {
	vector<data_t> validity;
	vector<data_t> data;
	const void *buffers[2];

	static void Release(ArrowArray *array) {
		delete static_cast<FixedBytes *>(array->private_data);
		array->release = nullptr;
	}
};

//! Turns an array of byte strings, all of one length, into one of Arrow's fixed-size binaries.
void ToFixedBytes(ArrowArray &array, const MeruColumn &column) {
	auto width = NumericCast<idx_t>(column.fixed_length);
	auto count = NumericCast<idx_t>(array.length);
	auto validity = static_cast<const data_t *>(array.buffers[0]);
	auto offsets = static_cast<const int32_t *>(array.buffers[1]);
	auto data = static_cast<const data_t *>(array.buffers[2]);
	auto result = make_uniq<FixedBytes>();
	result->data.resize(count * width);
	if (validity && array.null_count > 0) {
		result->validity.assign(validity, validity + (count + 7) / 8);
	}
	for (idx_t i = 0; i < count; i++) {
		if (!result->validity.empty() && !(result->validity[i / 8] >> (i % 8) & 1)) {
			continue;
		}
		auto length = NumericCast<idx_t>(offsets[i + 1] - offsets[i]);
		if (length != width) {
			throw InvalidInputException("Column \"%s\" takes exactly %llu bytes, got %llu", column.name,
										static_cast<uint64_t>(width), static_cast<uint64_t>(length));
		}
		memcpy(result->data.data() + i * width, data + offsets[i], width);
	}
	result->buffers[0] = result->validity.empty() ? nullptr : result->validity.data();
	result->buffers[1] = result->data.data();
	auto null_count = array.null_count;
	array.release(&array);
	memset(&array, 0, sizeof(array));
	array.length = NumericCast<int64_t>(count);
	array.null_count = null_count;
	array.n_buffers = 2;
	array.buffers = result->buffers;
	array.release = FixedBytes::Release;
	array.private_data = result.release();
}

} // namespace

ArrowRowBuffer::ArrowRowBuffer(ClientContext &context, const MeruTable &table, vector<idx_t> columns_p)
	: context(context), table(table), columns(std::move(columns_p)) {
	vector<LogicalType> types;
	for (auto index : columns) {
		types.push_back(StoredForm::AppenderType(table.columns[index].type));
	}
	encoded.Initialize(Allocator::DefaultAllocator(), types);

	auto engine_schema = table.ToEngine();
	memset(&full_schema, 0, sizeof(full_schema));
	MeruCall([&](char **err) { return meru_arrow_schema(engine_schema.Get(), &full_schema, err); });
	for (auto index : columns) {
		children.push_back(full_schema.children[index]);
	}
	memset(&schema, 0, sizeof(schema));
	schema.format = "+s";
	schema.name = "";
	schema.n_children = NumericCast<int64_t>(children.size());
	schema.children = children.data();
	// A schema without a release function counts as released.
	schema.release = [](ArrowSchema *view) {
		view->release = nullptr;
	};
}

ArrowRowBuffer::~ArrowRowBuffer() {
	if (full_schema.release) {
		full_schema.release(&full_schema);
	}
}

void ArrowRowBuffer::CheckNulls(DataChunk &chunk) const {
	for (idx_t i = 0; i < columns.size(); i++) {
		auto &column = table.columns[columns[i]];
		if ((!column.nullable || table.IsKey(columns[i])) && VectorOperations::HasNull(chunk.data[i], chunk.size())) {
			throw ConstraintException("NOT NULL constraint failed: %s.%s", table.name, column.name);
		}
	}
}

void ArrowRowBuffer::Encode(DataChunk &chunk) {
	encoded.Reset();
	for (idx_t i = 0; i < columns.size(); i++) {
		StoredForm::Encode(context, chunk.data[i], encoded.data[i], chunk.size());
	}
	encoded.SetCardinality(chunk.size());
}

void ArrowRowBuffer::AppendRange(idx_t from, idx_t to) {
	if (!appender) {
		appender = make_uniq<ArrowAppender>(encoded.GetTypes(), BATCH_ROWS, AppenderProperties(),
											unordered_map<idx_t, const shared_ptr<ArrowTypeExtensionData>>());
	}
	appender->Append(encoded, from, to, encoded.size());
}

void ArrowRowBuffer::Append(DataChunk &chunk, const flush_t &flush) {
	CheckNulls(chunk);
	Encode(chunk);
	auto count = encoded.size();
	vector<RecursiveUnifiedVectorFormat> varying;
	for (auto &vector : encoded.data) {
		if (HasVariableSize(vector.GetType())) {
			varying.emplace_back();
			Vector::RecursiveToUnifiedFormat(vector, count, varying.back());
		}
	}
	idx_t from = 0;
	for (idx_t row = 0; row < count; row++) {
		idx_t row_bytes = 0;
		for (auto &format : varying) {
			row_bytes += ValueBytes(format, row, 1);
		}
		if (buffered_bytes + row_bytes > BATCH_BYTES && (appender || row > from)) {
			if (row > from) {
				AppendRange(from, row);
				from = row;
			}
			Flush(flush);
		}
		buffered_bytes += row_bytes;
		if (varying.empty()) {
			break;
		}
	}
	AppendRange(from, count);
	if (appender->RowCount() >= BATCH_ROWS) {
		Flush(flush);
	}
}

void ArrowRowBuffer::Flush(const flush_t &flush) {
	buffered_bytes = 0;
	if (!appender) {
		return;
	}
	auto full = std::move(appender);
	auto rows = full->Finalize();
	try {
		for (idx_t i = 0; i < columns.size(); i++) {
			auto &column = table.columns[columns[i]];
			if (column.fixed_length > 0) {
				ToFixedBytes(*rows.children[i], column);
			}
		}
	} catch (...) {
		rows.release(&rows);
		throw;
	}
	flush(rows, schema);
}

} // namespace duckdb
