#!/bin/sh
# What is installed, in which version. Fails if anything that `./dev test` needs is missing.
set -eu
cd "$(dirname "$0")/.."
. scripts/lib.sh
use_tools

missing=0

# tool NAME WHY COMMAND…: the first line of its version.
tool() {
	name=$1 why=$2
	shift 2
	if command -v "$1" >/dev/null 2>&1 && version=$("$@" 2>/dev/null | grep -m 1 '[0-9]'); then
		printf '  %-14s %s\n' "$name" "$version"
	else
		printf '  %-14s MISSING: %s\n' "$name" "$why"
		missing=$((missing + 1))
	fi
}

# optional NAME WHY COMMAND…: missing is fine.
optional() {
	if command -v "$3" >/dev/null 2>&1; then
		tool "$@"
	else
		printf '  %-14s not here: %s\n' "$1" "$2"
	fi
}

# installed NAME PATH HOW
installed() {
	if [ -e "$2" ]; then
		printf '  %-14s %s\n' "$1" "$2"
	else
		printf '  %-14s not yet (%s)\n' "$1" "$3"
	fi
}

echo "from the machine"
tool cc "a C compiler (Debian: build-essential)" "${CC:-cc}" --version
tool c++ "a C++17 compiler (Debian: build-essential)" "${CXX:-c++}" --version
tool git "version control" git --version
tool readelf "binutils, for the check of thread-local storage" readelf --version
tool nm "binutils, for the check of the exported symbols" nm --version
tool tar "to unpack what is fetched" tar --version
tool go "see scripts/init.sh" go version
optional node "./dev fetches it for demo data and host tests" node --version
optional cargo "pip fetches DuckDB's sources instead, slowly" cargo --version
echo "from scripts/requirements.txt"
tool just "./dev init" just --version
tool cmake "./dev init" cmake --version
tool ninja "./dev init" ninja --version
tool clang-format "./dev init" clang-format --version
tool sccache "./dev init" sccache --version
tool duckdb "./dev init" "$(sh scripts/shell.sh --binary)" --version
echo "from scripts/tools/go.mod"
for name in staticcheck gofumpt gotestsum versitygw toxiproxy; do
	installed "$name" "build/bin/$name" "./dev lint"
done
echo "DuckDB $(cat third_party/duckdb/VERSION), source id $(pin DUCKDB_SOURCE_ID)"
installed sources third_party/duckdb/src/src/include/duckdb.hpp "./dev init"
installed libraries third_party/duckdb/lib/libduckdb_static.a "./dev init"
echo "engine"
printf '  %-14s %s\n' workspace "${MERUTABLE_WORKSPACE:-$PWD}"
[ "$missing" -eq 0 ] || die "$missing missing"
