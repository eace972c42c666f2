//! The snapshots of databases that a statement names by path: one per path, so that a statement sees one state.

#pragma once

#include "common/table_version.hpp"
#include "duckdb/common/optional_ptr.hpp"
#include "duckdb/main/client_context_state.hpp"

namespace duckdb {

class StatementSnapshots : public ClientContextState {
  public:
	//! The lease for a path, acquired at its first use in this statement. Throws where there is no table.
	static shared_ptr<MeruSnapshotLease> Get(ClientContext &context, const string &path);
	//! The same for an older state of the table.
	static shared_ptr<MeruSnapshotLease> Get(ClientContext &context, const string &path,
											 optional_ptr<const MeruTableVersion> version);

	void QueryEnd() override;
	void TransactionCommit(MetaTransaction &transaction, ClientContext &context) override;
	void TransactionRollback(MetaTransaction &transaction, ClientContext &context) override;

  private:
	mutex lock;
	unordered_map<string, shared_ptr<MeruSnapshotLease>> leases;
};

} // namespace duckdb
