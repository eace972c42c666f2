//! What a function like merutable_flush('m') or merutable_flush('/data/m') means.

#pragma once

#include "common/meru_handle.hpp"
#include "functions/meru_watcher.hpp"

namespace duckdb {

struct DatabaseTarget {
	//! The name of the attached database, or the path.
	string name;
	shared_ptr<MeruDatabase> database;

	//! An attached merutable database of that name, else the database at that path, opened for writing. Throws where
	//! there is neither.
	static DatabaseTarget Resolve(ClientContext &context, const string &name_or_path);
	//! The same for reading only: also one that is attached READ_ONLY, or has no table yet.
	static DatabaseTarget ResolveReader(ClientContext &context, const string &name_or_path);
};

//! Where that is, for what opens no database.
struct DatabaseLocation {
	string path;
	//! What it was attached with, or would be opened with.
	shared_ptr<MeruOpenSettings> settings;
	//! The database where it is attached, else NULL.
	shared_ptr<MeruDatabase> attached;
	bool read_only = false;

	static DatabaseLocation Resolve(ClientContext &context, const string &name_or_path);
};

//! Compacts all tables of a database, one after the other.
void CompactTables(MeruDatabase &database, MeruProgress &progress, const MeruWatch *watch);

} // namespace duckdb
