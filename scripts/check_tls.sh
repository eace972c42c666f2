#!/bin/sh
# check_tls.sh FILE…: fails if a library needs more thread-local storage than a process has left for it.
#
# A Go archive puts the TLS of its whole module into the static block, which is sized when the process starts; a library
# that comes later gets a share of a small surplus. Above it, the load fails with "cannot allocate memory in static TLS
# block", and only in some hosts.
set -eu
cd "$(dirname "$0")/.."
. scripts/lib.sh

limit_bytes=512
if [ "$(host_os)" = darwin ]; then
	say "macOS allocates thread-local storage on demand: no bound to check"
	exit 0
fi
command -v readelf >/dev/null 2>&1 || die "readelf is missing (Debian: apt-get install binutils)"
for file in "$@"; do
	[ -f "$file" ] || die "$file is not built"
	# Columns of a program header: type, offset, virtual and physical address, size in the file, size in memory, …
	size_hex=$(readelf -lW "$file" 2>/dev/null | awk '$1 == "TLS" { print $6 }')
	size_bytes=$((${size_hex:-0}))
	[ "$size_bytes" -lt "$limit_bytes" ] || die "$file needs $size_bytes bytes of static TLS, the limit is $limit_bytes"
	say "static TLS $size_bytes of $limit_bytes bytes: ${file##*/}"
done
