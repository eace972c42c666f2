#!/bin/sh
# DuckDB hosts: the extension in Python, in DuckDB's shell, in Node and in a Go program (two Go runtimes).
#   run.sh path/to/merutable.duckdb_extension [pytest arguments]
# PYTHON names the interpreter with the packages of scripts/requirements.txt (default: the project's, else python3).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
[ $# -ge 1 ] || {
	echo "usage: run.sh path/to/merutable.duckdb_extension [pytest arguments]" >&2
	exit 2
}
extension=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
shift
[ -f "$extension" ] || {
	echo "run.sh: $extension is missing: build it first" >&2
	exit 2
}
if [ -z "${PYTHON:-}" ]; then
	PYTHON=$root/build/venv/bin/python
	[ -x "$PYTHON" ] || PYTHON=python3
fi
cd "$here"
exec "$PYTHON" -m pytest -q -p no:cacheprovider --tb=short --extension="$extension" "$@" .
