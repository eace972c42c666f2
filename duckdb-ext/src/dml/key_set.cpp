#include "dml/key_set.hpp"

#include "duckdb/planner/logical_operator.hpp"
#include "duckdb/storage/buffer_manager.hpp"

namespace duckdb {

KeySet::KeySet(ClientContext &context, const vector<LogicalType> &types)
	: table(context, BufferAllocator::Get(context), types), addresses(LogicalType::POINTER) {
}

idx_t KeySet::Add(DataChunk &keys, SelectionVector &new_keys) {
	return table.FindOrCreateGroups(keys, addresses, new_keys);
}

bool CanRepeatRows(const LogicalOperator &op) {
	switch (op.type) {
	case LogicalOperatorType::LOGICAL_GET:
	case LogicalOperatorType::LOGICAL_EMPTY_RESULT:
		return false;
	case LogicalOperatorType::LOGICAL_FILTER:
	case LogicalOperatorType::LOGICAL_PROJECTION:
		return CanRepeatRows(*op.children[0]);
	default:
		return true;
	}
}

} // namespace duckdb
