#include "common/key_arrow.hpp"

#include "common/arrow_batches.hpp"
#include "common/arrow_rows.hpp"
#include "common/stored_form.hpp"

namespace duckdb {

namespace {

//! Values in Arrow's types into those of the table.
void DecodeValues(DataChunk &raw, DataChunk &output) {
	for (idx_t i = 0; i < output.ColumnCount(); i++) {
		StoredForm::Decode(raw.data[i], output.data[i], raw.size());
	}
	output.SetCardinality(raw.size());
}

//! The one row of an array of all columns. Returns false where there is none.
bool DecodeRow(ClientContext &context, const MeruSnapshotRef &snapshot, unique_ptr<ArrowArrayWrapper> row,
			   DataChunk &output) {
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
	DecodeValues(raw, output);
	return true;
}

} // namespace

RowLookup::RowLookup(ClientContext &context, shared_ptr<MeruSnapshotRef> snapshot_p)
	: context(context), snapshot(std::move(snapshot_p)), buffer(context, snapshot->Table(), snapshot->Table().key) {
	ArrowSchema schema;
	memset(&schema, 0, sizeof(schema));
	MeruCall([&](char **err) { return meru_arrow_schema(snapshot->Schema(), &schema, err); });
	columns = make_uniq<ArrowColumns>(context, schema);
	raw.Initialize(context, columns->Types());
	decoded.Initialize(context, snapshot->Table().Types());
	rows.Initialize(context, snapshot->Table().Types());
}

DataChunk &RowLookup::Find(DataChunk &keys) {
	rows.Reset();
	vector<uint8_t> found;
	auto look = [&](ArrowArray &array, const ArrowSchema &schema) {
		found.resize(NumericCast<idx_t>(array.length));
		auto result = make_uniq<ArrowArrayWrapper>();
		MeruCall([&](char **err) {
			return meru_snapshot_multi_get(snapshot->Get(), &array, &schema, found.data(), &result->arrow_array, err);
		});
		ArrowBatch batch(context, *columns, std::move(result));
		while (batch.Next(raw)) {
			decoded.Reset();
			DecodeValues(raw, decoded);
			rows.Append(decoded);
		}
	};
	buffer.Append(keys, look);
	buffer.Flush(look);
	return rows;
}

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
	return DecodeRow(context, snapshot, std::move(row), output);
}

vector<Value> InitialDefaults(ClientContext &context, const MeruSnapshotRef &snapshot) {
	vector<Value> result;
	for (auto &type : snapshot.Table().Types()) {
		result.emplace_back(type);
	}
	int found = 0;
	auto row = make_uniq<ArrowArrayWrapper>();
	MeruCall([&](char **err) {
		return meru_table_schema_initial_defaults(snapshot.Schema(), &found, &row->arrow_array, err);
	});
	if (!found) {
		return result;
	}
	DataChunk values;
	values.Initialize(context, snapshot.Table().Types());
	if (DecodeRow(context, snapshot, std::move(row), values)) {
		for (idx_t i = 0; i < result.size(); i++) {
			result[i] = values.GetValue(i, 0);
		}
	}
	return result;
}

} // namespace duckdb
