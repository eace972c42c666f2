#include "common/key_arrow.hpp"

#include "common/arrow_batches.hpp"
#include "common/arrow_rows.hpp"
#include "common/file_form.hpp"
#include "duckdb/common/vector_operations/vector_operations.hpp"
#include "duckdb/execution/expression_executor.hpp"
#include "duckdb/planner/expression/bound_reference_expression.hpp"

namespace duckdb {

namespace {

//! Values in Arrow's types into those of the table.
void DecodeRow(ClientContext &context, DataChunk &raw, DataChunk &output) {
	for (idx_t i = 0; i < output.ColumnCount(); i++) {
		auto &from = raw.data[i];
		auto &to = output.data[i];
		if (from.GetType() == to.GetType()) {
			to.Reference(from);
		} else if (HasFileForm(to.GetType())) {
			auto bytes = make_uniq<BoundReferenceExpression>(from.GetType(), i);
			auto decoder = MakeFileFormDecoder(std::move(bytes), to.GetType());
			ExpressionExecutor executor(context, *decoder);
			executor.ExecuteExpression(raw, to);
		} else {
			VectorOperations::Cast(context, from, to, raw.size());
		}
	}
	output.SetCardinality(raw.size());
}

} // namespace

bool LookupKey(ClientContext &context, const MeruSnapshotRef &snapshot, DataChunk &key, DataChunk &output) {
	int found = 0;
	auto row = make_uniq<ArrowArrayWrapper>();
	auto lookup = [&](ArrowArray &array, const ArrowSchema &schema) {
		MeruCall([&](char **err) {
			return meru_snapshot_get(snapshot.Get(), &array, &schema, &found, &row->arrow_array, err);
		});
	};
	ArrowRowBuffer buffer(context, snapshot.Table(), snapshot.Table().key);
	buffer.Append(key, lookup);
	buffer.Flush(lookup);
	if (!found) {
		return false;
	}
	ArrowSchema schema;
	memset(&schema, 0, sizeof(schema));
	MeruCall([&](char **err) { return meru_arrow_schema(snapshot.Schema(), &schema, err); });
	ArrowColumns columns(context, schema);
	ArrowBatch batch(context, columns, std::move(row));
	DataChunk raw;
	raw.Initialize(context, columns.Types());
	if (!batch.Next(raw)) {
		return false;
	}
	DecodeRow(context, raw, output);
	return true;
}

} // namespace duckdb
