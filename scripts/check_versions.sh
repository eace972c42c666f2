#!/bin/sh
# third_party/duckdb/VERSION is the one place that says which DuckDB: every pin that repeats it must agree.
set -eu
cd "$(dirname "$0")/.."
. scripts/lib.sh

version=$(cat third_party/duckdb/VERSION)
# 1.5.5 is 1.10505.0 for the crate and v0.10505.0 for the Go modules: major, then two digits each of minor and patch.
number=$(echo "$version" | awk -F. '{ printf "%d%02d%02d", $1, $2, $3 }')
failed=0

# agrees FILE TEXT
agrees() {
	grep -qF -- "$2" "$1" || {
		say "$1 does not say '$2' (third_party/duckdb/VERSION is $version)"
		failed=1
	}
}

agrees third_party/duckdb/pins.env "DUCKDB_CRATE_VERSION=1.$number.0"
agrees third_party/duckdb/pins.env "DUCKDB_LIB_VERSION=v0.$number.0"
agrees third_party/duckdb/fetch/Cargo.toml "=1.$number.0"
agrees third_party/duckdb/fetch/Cargo.lock "$(sed -n 's/^DUCKDB_CRATE_SHA256=//p' third_party/duckdb/pins.env)"
agrees scripts/requirements.txt "duckdb==$version"
agrees scripts/requirements.txt "duckdb-cli==$version"
agrees scripts/node/package.json "\"@duckdb/node-api\": \"$version-"
agrees .github/workflows/release.yml "duckdb_version: [v$version]"
exit "$failed"
