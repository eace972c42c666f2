#!/bin/sh
# DuckDB's shell with the extension of a configuration loaded: shell.sh debug|release [arguments of duckdb]. With
# --binary it prints where the shell is: the package's own `duckdb` script is only a wrapper.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
here=$PWD
cd "$root"
. scripts/lib.sh
binary=$(build/venv/bin/python -c 'import duckdb_cli, os; print(os.path.join(os.path.dirname(duckdb_cli.__file__), "duckdb"))')
if [ "$1" = --binary ]; then
	printf '%s\n' "$binary"
	exit 0
fi
extension=$root/build/$1/extension/merutable/merutable.duckdb_extension
shift
[ -f "$extension" ] || die "$extension is not built"
# Relative paths in SQL are the caller's.
cd "$here"
quoted=$(printf '%s' "$extension" | sed "s/'/''/g")
exec "$binary" -unsigned -cmd "LOAD '$quoted'" "$@"
