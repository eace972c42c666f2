#include "scan/snapshot_part.hpp"

#include "common/arrow_rows.hpp"
#include "duckdb/common/arrow/arrow_wrapper.hpp"

namespace duckdb {

namespace {

//! Prefixes of keys, all of the same number of columns, as an Arrow array for the engine to take.
class PrefixArray {
  public:
	PrefixArray(ClientContext &context, const MeruTable &table, const vector<vector<Value>> &prefixes, idx_t width) {
		vector<idx_t> columns(table.key.begin(), table.key.begin() + NumericCast<int64_t>(width));
		vector<LogicalType> types;
		for (auto column : columns) {
			types.push_back(table.columns[column].type);
		}
		DataChunk rows;
		rows.Initialize(context, types, MinValue<idx_t>(MaxValue<idx_t>(prefixes.size(), 1), STANDARD_VECTOR_SIZE));
		buffer = make_uniq<ArrowRowBuffer>(context, table, std::move(columns));
		auto keep = [&](ArrowArray &flushed, const ArrowSchema &flushed_schema) {
			array.arrow_array = flushed;
			flushed.release = nullptr;
			schema = &flushed_schema;
		};
		for (idx_t at = 0; at < prefixes.size() || at == 0; at += STANDARD_VECTOR_SIZE) {
			rows.Reset();
			auto count = MinValue<idx_t>(prefixes.size() - at, STANDARD_VECTOR_SIZE);
			for (idx_t row = 0; row < count; row++) {
				for (idx_t i = 0; i < width; i++) {
					rows.SetValue(i, row, prefixes[at + row][i]);
				}
			}
			rows.SetCardinality(count);
			buffer->Append(rows, keep);
		}
		buffer->Flush(keep);
	}

	ArrowArray *Array() {
		return &array.arrow_array;
	}
	const ArrowSchema *Schema() const {
		return schema;
	}

  private:
	unique_ptr<ArrowRowBuffer> buffer;
	ArrowArrayWrapper array;
	const ArrowSchema *schema = nullptr;
};

//! One end of a range. None where the end is open.
class BoundArray {
  public:
	BoundArray(ClientContext &context, const MeruTable &table, const vector<Value> &values) {
		if (!values.empty()) {
			rows = make_uniq<PrefixArray>(context, table, vector<vector<Value>>{values}, values.size());
		}
	}
	ArrowArray *Array() {
		return rows ? rows->Array() : nullptr;
	}
	const ArrowSchema *Schema() const {
		return rows ? rows->Schema() : nullptr;
	}

  private:
	unique_ptr<PrefixArray> rows;
};

int PartOfPrefixes(ClientContext &context, const MeruSnapshotRef &snapshot, const KeyBounds &bounds,
				   MeruSnapshot **part, char **message) {
	PrefixArray rows(context, snapshot.Table(), bounds.prefixes,
					 bounds.prefixes.empty() ? 1 : bounds.prefixes[0].size());
	return meru_snapshot_part_of_keys(snapshot.Get(), rows.Array(), rows.Schema(), part, message);
}

int PartOfRange(ClientContext &context, const MeruSnapshotRef &snapshot, const KeyBounds &bounds, MeruSnapshot **part,
				char **message) {
	BoundArray lower(context, snapshot.Table(), bounds.lower);
	BoundArray upper(context, snapshot.Table(), bounds.upper);
	return meru_snapshot_part(snapshot.Get(), lower.Array(), lower.Schema(), bounds.lower_exclusive, upper.Array(),
							  upper.Schema(), bounds.upper_exclusive, part, message);
}

//! Whether a call succeeded. False where an argument is no value of a key.
bool Accepted(int status, char *message) {
	if (status == MeruStatus_ErrInvalidArg) {
		meru_free_string(message);
		return false;
	}
	if (status != MeruStatus_Ok) {
		ThrowMeruError(status, message);
	}
	return true;
}

} // namespace

shared_ptr<MeruSnapshotRef> SnapshotPart::Make(ClientContext &context, const MeruSnapshotRef &snapshot,
											   const KeyBounds &bounds, bool leave_files) {
	MeruSnapshot *part = nullptr;
	char *message = nullptr;
	auto status = bounds.is_prefixes ? PartOfPrefixes(context, snapshot, bounds, &part, &message)
									 : PartOfRange(context, snapshot, bounds, &part, &message);
	if (!Accepted(status, message)) {
		return nullptr;
	}
	if (leave_files) {
		try {
			MeruCall([&](char **err) { return meru_part_leave_files(part, err); });
		} catch (...) {
			meru_snapshot_release(part);
			throw;
		}
	}
	return make_shared_ptr<MeruSnapshotRef>(snapshot.SharedDatabase(), part);
}

bool SnapshotPart::FileMeets(ClientContext &context, const MeruSnapshotRef &snapshot, idx_t file,
							 const KeyBounds &bounds) {
	BoundArray lower(context, snapshot.Table(), bounds.lower);
	BoundArray upper(context, snapshot.Table(), bounds.upper);
	int meets = 1;
	char *message = nullptr;
	auto status = meru_snapshot_file_meets(snapshot.Get(), file, lower.Array(), lower.Schema(), bounds.lower_exclusive,
										   upper.Array(), upper.Schema(), bounds.upper_exclusive, &meets, &message);
	return !Accepted(status, message) || meets != 0;
}

} // namespace duckdb
