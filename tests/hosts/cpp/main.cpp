// A C++ host of the library, built against include/merutable.h:  host DIR, an empty directory to work in.
#include "kit.hpp"

int main(int argc, char **argv) {
	if (argc != 2) {
		fprintf(stderr, "usage: %s DIR\n", argv[0]);
		return 2;
	}
	check_host = getenv("CHECK_HOST") ? getenv("CHECK_HOST") : "cpp";
	test_dir = argv[1];
	SchemaCases();
	AlterCases();
	TableCases();
	NestedCases();
	TypeCases();
	WriteCases();
	TxnCases();
	SnapshotCases();
	ScanCases();
	MaintenanceCases();
	MirrorCases();
	ThreadCases();
	ProcessCases();
	return check_failed_cases ? 1 : 0;
}
