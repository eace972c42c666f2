#include "dml/new_row_filter.hpp"

namespace duckdb {

NewRowFilter::NewRowFilter(ClientContext &context, const MeruTable &table, shared_ptr<MeruSnapshotRef> snapshot)
	: table(table), seen(context, table.KeyTypes()), lookup(context, std::move(snapshot)),
	  waiting(context, table.Types()) {
	keys.Initialize(context, table.KeyTypes());
	first_rows.InitializeEmpty(table.Types());
}

void NewRowFilter::Add(DataChunk &rows, const take_t &take) {
	keys.Reset();
	keys.ReferenceColumns(rows, table.key);
	keys.SetCardinality(rows.size());
	SelectionVector first(STANDARD_VECTOR_SIZE);
	auto count = seen.Add(keys, first);
	if (count == 0) {
		return;
	}
	first_rows.Reference(rows);
	if (count < rows.size()) {
		first_rows.Slice(first, count);
		keys.Slice(first, count);
	}
	lookup.Add(keys);
	waiting.Append(first_rows);
	if (waiting.Count() >= WAITING_ROWS || waiting.SizeInBytes() >= WAITING_BYTES) {
		Flush(take);
	}
}

void NewRowFilter::Flush(const take_t &take) {
	auto found = lookup.Finish();
	idx_t at = 0;
	SelectionVector absent(STANDARD_VECTOR_SIZE);
	for (auto &chunk : waiting.Chunks()) {
		idx_t count = 0;
		for (idx_t i = 0; i < chunk.size(); i++) {
			if (!found[at + i]) {
				absent.set_index(count++, i);
			}
		}
		at += chunk.size();
		if (count < chunk.size()) {
			chunk.Slice(absent, count);
		}
		if (count > 0) {
			take(chunk);
		}
	}
	waiting.Reset();
}

} // namespace duckdb
