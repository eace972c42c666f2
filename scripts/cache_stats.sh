#!/bin/sh
# Compiler caches: hits, and how much disk they use.
set -eu
cd "$(dirname "$0")/.."
. scripts/lib.sh
use_tools

if command -v sccache >/dev/null 2>&1; then
	echo "sccache (C++)"
	sccache --show-stats | grep -E 'Compile requests|Cache hits|Cache misses|Cache size|Max cache size|Cache location' | sed 's/^/  /'
else
	echo "sccache: not installed (./dev init)"
fi
echo "Go build cache"
du -sh "$(go env GOCACHE)" 2>/dev/null | sed 's/^/  /' || echo "  none"
echo "build folders"
du -sh build third_party/duckdb/src third_party/duckdb/lib 2>/dev/null | sed 's/^/  /'
