#pragma once

namespace duckdb {
class ExtensionLoader;

//! merutable_get(path, key…): the row of a key, or none.
struct MerutableGet {
	static void Register(ExtensionLoader &loader);
};

//! merutable_flush(name_or_path): what is in memory goes to files.
struct MerutableFlush {
	static void Register(ExtensionLoader &loader);
};

//! merutable_changes(name_or_path, since_seq [, until]): what happened to the rows, in order.
struct MerutableChanges {
	static void Register(ExtensionLoader &loader);
};

//! merutable_clone(name_or_path, path [, version := …]): a local copy.
struct MerutableClone {
	static void Register(ExtensionLoader &loader);
};

//! merutable_compact(name_or_path): one sorted run of all rows.
struct MerutableCompact {
	static void Register(ExtensionLoader &loader);
};

//! merutable_stats, merutable_files, merutable_snapshots, merutable_options, merutable_mirror_status (name_or_path):
//! what there is; and merutable_gc(name_or_path, dry_run := …): what there was too much.
struct MerutableReports {
	static void Register(ExtensionLoader &loader);
};

//! merutable_verify(name_or_path): what is damaged.
struct MerutableVerify {
	static void Register(ExtensionLoader &loader);
};

//! SET merutable_…
struct MerutableSettings {
	//! Defaults for opening, NULL where they are not set.
	static constexpr const char *MEMORY_LIMIT = "merutable_memory_limit";
	static constexpr const char *DURABILITY = "merutable_durability";

	static void Register(ExtensionLoader &loader);
};

} // namespace duckdb
