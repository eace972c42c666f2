#!/bin/sh
# Configures the extension as DuckDB's own build would, with a stub in DuckDB's place (compiling DuckDB takes an hour).
set -eu
cd "$(dirname "$0")/.."
. scripts/lib.sh
use_tools

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/duckdb/third_party/libpg_query"
cp tests/cmake/upstream/CMakeLists.txt "$work/duckdb/"
: >"$work/duckdb/third_party/libpg_query/pg_functions.cpp"
cmake -S "$work/duckdb" -B "$work/build" -G Ninja -DCMAKE_MAKE_PROGRAM="$PWD/build/venv/bin/ninja" \
	-DEXTENSION_CONFIG="$PWD/extension_config.cmake" >"$work/log" 2>&1 || {
	tail_of "$work/log"
	die "the extension does not configure inside DuckDB's build"
}
