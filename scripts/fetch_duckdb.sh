#!/bin/sh
# Brings DuckDB's sources (third_party/duckdb/src) and prebuilt static libraries (third_party/duckdb/lib), both of the
# version in third_party/duckdb/VERSION and both checked against third_party/duckdb/pins.env before they are used.
set -eu
cd "$(dirname "$0")/.."
. scripts/lib.sh
use_tools

version=$(cat third_party/duckdb/VERSION)
key="$version $(cksum <third_party/duckdb/pins.env)"
work=build/fetch

# The crate's archive and the Python source distribution hold the same tree under different prefixes.
unpack_sources() {
	rm -rf "$work/src" third_party/duckdb/src
	mkdir -p "$work/src"
	if command -v cargo >/dev/null 2>&1 && sources_from_crate; then
		:
	elif sources_from_sdist; then
		:
	else
		die "DuckDB $version: the sources could be fetched neither with cargo (crate libduckdb-sys) nor with pip (duckdb, source distribution); is a package registry reachable?"
	fi
	for file in src/include/duckdb.hpp third_party/libpg_query/pg_functions.cpp extension/loader/dummy_static_extension_loader.cpp; do
		[ -f "$work/src/duckdb/$file" ] || die "the fetched DuckDB sources lack $file"
	done
	mv "$work/src/duckdb" third_party/duckdb/src
}

sources_from_crate() {
	crate=$(pin DUCKDB_CRATE)-$(pin DUCKDB_CRATE_VERSION)
	say "DuckDB $version sources: cargo fetch ($crate)"
	cargo_home=${CARGO_HOME:-$HOME/.cargo}
	if ! ls "$cargo_home"/registry/cache/*/"$crate.crate" >/dev/null 2>&1; then
		cargo fetch --quiet --locked --manifest-path third_party/duckdb/fetch/Cargo.toml >build/logs/cargo.log 2>&1 || {
			tail_of build/logs/cargo.log
			say "cargo fetch failed; trying the Python source distribution"
			return 1
		}
	fi
	archive=$(ls "$cargo_home"/registry/cache/*/"$crate.crate" | head -n 1)
	check_sha256 "$archive" "$(pin DUCKDB_CRATE_SHA256)"
	tar -xzf "$archive" -C "$work/src" "$crate/duckdb.tar.gz"
	check_sha256 "$work/src/$crate/duckdb.tar.gz" "$(pin DUCKDB_CRATE_TARBALL_SHA256)"
	tar -xzf "$work/src/$crate/duckdb.tar.gz" -C "$work/src"
}

sources_from_sdist() {
	say "DuckDB $version sources: pip download (duckdb-$version.tar.gz; slow, because pip prepares its build as well)"
	printf 'duckdb==%s --hash=sha256:%s\n' "$version" "$(pin DUCKDB_SDIST_SHA256)" >"$work/sdist.txt"
	build/venv/bin/python -m pip download --quiet --disable-pip-version-check --no-deps --no-binary duckdb \
		--require-hashes -d "$work/sdist" -r "$work/sdist.txt" >build/logs/sdist.log 2>&1 || {
		tail_of build/logs/sdist.log
		return 1
	}
	archive=$work/sdist/duckdb-$version.tar.gz
	check_sha256 "$archive" "$(pin DUCKDB_SDIST_SHA256)"
	tree=duckdb-$version/external/duckdb
	tar -xzf "$archive" -C "$work/src" "$tree/src" "$tree/third_party" "$tree/extension"
	mv "$work/src/$tree" "$work/src/duckdb"
}

fetch_libraries() {
	platform=$(host_os)-$(host_arch)
	module=$(pin DUCKDB_LIB_MODULE)/$platform@$(pin DUCKDB_LIB_VERSION)
	wanted=$(pin "DUCKDB_LIB_H1_$(host_os)_$(host_arch)")
	say "DuckDB $version static libraries: go mod download ($module, 134 MB when not cached)"
	# Outside our module: these libraries are no dependency of the engine, so go.sum has no line for them. Go hashes the
	# module; the hash is compared with ours.
	(cd / && go mod download -json "$module") >"$work/lib.json" 2>build/logs/lib.log || {
		cat "$work/lib.json" >>build/logs/lib.log
		tail_of build/logs/lib.log
		die "could not fetch $module; is the Go module proxy reachable? (build/logs/lib.log)"
	}
	found=$(sed -n 's/^[[:space:]]*"Sum": "\(.*\)",*$/\1/p' "$work/lib.json")
	folder=$(sed -n 's/^[[:space:]]*"Dir": "\(.*\)",*$/\1/p' "$work/lib.json")
	[ "$found" = "$wanted" ] || die "$module has hash '$found', but '$wanted' is pinned: not using it"
	# Copied, because Go's module cache may be cleaned at any time. Only what the extension links.
	rm -rf third_party/duckdb/lib "$work/lib"
	mkdir -p "$work/lib"
	cp "$folder"/LICENSE "$folder"/libduckdb_*.a "$work/lib/"
	chmod u+w "$work/lib"/*
	mv "$work/lib" third_party/duckdb/lib
}

mkdir -p "$work" build/logs
if ! stamped duckdb-src "$key" || [ ! -d third_party/duckdb/src ]; then
	unpack_sources
	stamp duckdb-src "$key"
fi
if ! stamped duckdb-lib "$key" || [ ! -d third_party/duckdb/lib ]; then
	fetch_libraries
	stamp duckdb-lib "$key"
fi
