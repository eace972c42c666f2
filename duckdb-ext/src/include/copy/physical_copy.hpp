#pragma once

#include "copy/copy_target.hpp"
#include "dml/row_checks.hpp"
#include "dml/write_operator.hpp"

namespace duckdb {

//! Writes to a path in one change, which it commits itself: like every COPY TO, it is no part of a transaction.
class MerutablePhysicalCopy : public MeruWriteOperator {
  public:
	//! places: where the chunks from below have the table's columns.
	MerutablePhysicalCopy(PhysicalPlan &plan, ClientContext &context, CopyTarget target, vector<idx_t> places,
						  idx_t estimated_cardinality);

	string GetName() const override;
	InsertionOrderPreservingMap<string> ParamsToString() const override;
	SinkFinalizeType Finalize(Pipeline &pipeline, Event &event, ClientContext &context,
							  OperatorSinkFinalizeInput &input) const override;

  protected:
	unique_ptr<MeruWriteGlobalState> Begin(ClientContext &context) const override;
	DataChunk &Prepare(ExecutionContext &context, MeruWriteGlobalState &gstate, MeruWriteLocalState &lstate,
					   DataChunk &input) const override;

  private:
	CopyTarget target;
	RowChecks checks;
	vector<idx_t> places;
};

} // namespace duckdb
