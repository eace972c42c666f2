#include "scan/key_columns.hpp"

namespace duckdb {

namespace {

//! Far from the numbers that DuckDB's multi-file scan uses, which count from the start.
constexpr column_t FIRST_KEY_COLUMN = (column_t(1) << 63) + 1000000;
constexpr column_t KEY_COLUMN_LIMIT = FIRST_KEY_COLUMN + 1000000;
//! No column of a table may begin like this.
constexpr const char *KEY_COLUMN_PREFIX = "_merutable_key_";

} // namespace

column_t KeyColumns::Id(idx_t key_position) {
	return FIRST_KEY_COLUMN + key_position;
}

bool KeyColumns::IsKeyColumn(column_t column) {
	return column >= FIRST_KEY_COLUMN && column < KEY_COLUMN_LIMIT;
}

idx_t KeyColumns::KeyPosition(column_t column) {
	return column - FIRST_KEY_COLUMN;
}

vector<column_t> KeyColumns::Ids(const MeruTable &table) {
	vector<column_t> result;
	for (idx_t i = 0; i < table.key.size(); i++) {
		result.push_back(Id(i));
	}
	return result;
}

void KeyColumns::AddTo(const MeruTable &table, virtual_column_map_t &columns) {
	for (idx_t i = 0; i < table.key.size(); i++) {
		columns.insert(std::make_pair(
			Id(i), TableColumn(KEY_COLUMN_PREFIX + std::to_string(i), table.columns[table.key[i]].type)));
	}
}

DistinctColumns::DistinctColumns(const MeruTable &table, const vector<ColumnIndex> &asked) {
	unordered_map<column_t, idx_t> places;
	for (auto &column : asked) {
		auto id = column.GetPrimaryIndex();
		if (KeyColumns::IsKeyColumn(id)) {
			id = table.key[KeyColumns::KeyPosition(id)];
		}
		auto entry = places.emplace(id, columns.size());
		if (entry.second) {
			columns.push_back(id == column.GetPrimaryIndex() ? column : ColumnIndex(id));
		}
		place.push_back(entry.first->second);
	}
}

} // namespace duckdb
