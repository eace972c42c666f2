//! What an operator needs to know as an action of a MERGE.

#pragma once

#include "dml/pending_rows.hpp"
#include "duckdb/planner/expression.hpp"

namespace duckdb {

//! Where the actions of one MERGE find what they share. Their states hold it: a plan may be kept for long.
struct MergePending {
	weak_ptr<MeruWriteBatch> write;
	weak_ptr<PendingRows> rows;
	//! For INSERT, where no action removes rows.
	weak_ptr<NewKeys> new_keys;
};

struct MergeAction {
	//! Those of the operator's result.
	vector<LogicalType> types;
	shared_ptr<MergePending> pending;
	bool return_rows;
	bool keep_order;
	//! Whether the MERGE has actions that remove rows, so that others may come to their keys.
	bool removes_rows;
	idx_t estimated_cardinality;
};

} // namespace duckdb
