#include "dml/new_keys.hpp"

#include "duckdb/common/exception.hpp"

namespace duckdb {

void ThrowDuplicateKey(const MeruTable &table, DataChunk &keys, idx_t row) {
	string text;
	for (idx_t i = 0; i < table.key.size(); i++) {
		text += (i > 0 ? ", " : "") + table.columns[table.key[i]].name + ": " + keys.GetValue(i, row).ToString();
	}
	throw ConstraintException("Duplicate key \"%s\" violates primary key constraint.", text);
}

NewKeys::NewKeys(ClientContext &context, const MeruTable &table, shared_ptr<MeruSnapshotRef> snapshot)
	: table(table), seen(context, table.KeyTypes()), lookup(context, std::move(snapshot)),
	  asked(context, table.KeyTypes()) {
	keys.Initialize(context, table.KeyTypes());
}

void NewKeys::Add(DataChunk &rows) {
	lock_guard<mutex> guard(lock);
	keys.Reset();
	keys.ReferenceColumns(rows, table.key);
	keys.SetCardinality(rows.size());
	// Refuses NULLs, so that none of them is taken for a key.
	lookup.Add(keys);
	SelectionVector first(STANDARD_VECTOR_SIZE);
	auto count = seen.Add(keys, first);
	if (count < keys.size()) {
		idx_t again = 0;
		while (again < count && first.get_index(again) == again) {
			again++;
		}
		ThrowDuplicateKey(table, keys, again);
	}
	asked.Append(keys);
	if (asked.Count() >= LOOKUP_KEYS) {
		CheckAsked();
	}
}

void NewKeys::Finish() {
	lock_guard<mutex> guard(lock);
	CheckAsked();
}

void NewKeys::CheckAsked() {
	auto found = lookup.Finish();
	idx_t at = 0;
	SelectionVector taken(STANDARD_VECTOR_SIZE);
	SelectionVector kept(STANDARD_VECTOR_SIZE);
	for (auto &chunk : asked.Chunks()) {
		idx_t count = 0;
		for (idx_t i = 0; i < chunk.size(); i++) {
			if (found[at + i]) {
				taken.set_index(count++, i);
			}
		}
		at += chunk.size();
		if (count == 0) {
			continue;
		}
		chunk.Slice(taken, count);
		if (!removed) {
			ThrowDuplicateKey(table, chunk, 0);
		}
		chunk.Flatten();
		if (removed->Add(chunk, kept) > 0) {
			ThrowDuplicateKey(table, chunk, kept.get_index(0));
		}
	}
	asked.Reset();
}

} // namespace duckdb
