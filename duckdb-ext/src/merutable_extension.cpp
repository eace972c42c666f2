#include "catalog/merutable_storage.hpp"
#include "common/remote_files.hpp"
#include "common/s3_secrets.hpp"
#include "copy/merutable_copy.hpp"
#include "duckdb/main/extension/extension_loader.hpp"
#include "functions/merutable_functions.hpp"
#include "functions/merutable_logging.hpp"
#include "merutable.h"
#include "scan/merutable_scan.hpp"
#include "sigguard.h"

namespace duckdb {

static void LoadInternal(ExtensionLoader &loader) {
	loader.SetDescription("Tables whose rows change all the time, kept as Parquet and read by DuckDB's own reader");
	MerutableScan::Register(loader);
	MerutableGet::Register(loader);
	MerutableFlush::Register(loader);
	MerutableChanges::Register(loader);
	MerutableClone::Register(loader);
	MerutableCompact::Register(loader);
	MerutableReports::Register(loader);
	MerutableVerify::Register(loader);
	MerutableSettings::Register(loader);
	RemoteFileSystem::Register(loader.GetDatabaseInstance());
	S3Secrets::Register(loader);
	MerutableLogging::Register(loader);
	MerutableCopy::Register(loader);
	MerutableStorage::Register(loader);
}

} // namespace duckdb

extern "C" {

DUCKDB_CPP_EXTENSION_ENTRY(merutable, loader) {
	// Any call into the engine waits until its Go runtime is up; only then is the host's signal action ours to restore.
	meru_abi_version();
	merutable_sigguard_restore();
	duckdb::LoadInternal(loader);
}
}
