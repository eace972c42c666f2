//! The snapshots of databases that a statement names by path: one per path, so that a statement sees one state.

#pragma once

#include "common/snapshot.hpp"
#include "duckdb/main/client_context_state.hpp"

namespace duckdb {

class StatementSnapshots : public ClientContextState {
  public:
	//! The lease for a path, acquired at its first use in this statement. Throws where there is no table.
	static shared_ptr<MeruSnapshotLease> Get(ClientContext &context, const string &path);

	void QueryEnd() override;
	void TransactionCommit(MetaTransaction &transaction, ClientContext &context) override;
	void TransactionRollback(MetaTransaction &transaction, ClientContext &context) override;

  private:
	mutex lock;
	unordered_map<string, shared_ptr<MeruSnapshotLease>> leases;
};

} // namespace duckdb
