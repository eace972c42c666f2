#!/bin/sh
# Builds the Go engine as a C library:
#
#   build_engine.sh archive debug|release OUT/libmerutable.a
#   build_engine.sh shared  debug|release OUT/libmerutable.so     (from the archive beside it, built first)
#
# MERUTABLE_WORKSPACE names another checkout to take the engine from; the default is this one.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
kind=$1 config=$2 out=$3
# An absolute path: the Go command runs in the workspace.
case $out in
/*) ;;
*) out=$PWD/$out ;;
esac
cd "$here"
. scripts/lib.sh
use_tools

workspace=${MERUTABLE_WORKSPACE:-$here}
[ -d "$workspace/capi" ] || die "there is no package capi/ in $workspace (MERUTABLE_WORKSPACE names where the engine is)"

# go_archive FILE. -trimpath everywhere, -s -w everywhere: what differs in flags shares no build cache, and a cold build
# of the dependencies takes minutes.
go_archive() {
	tags=
	[ "$config" = release ] || tags=invariants
	(cd "$workspace" && go build -buildmode=c-archive -trimpath -buildvcs=false -ldflags='-s -w' -tags="$tags" -o "$1" ./capi)
}

# The time stamp of an archive that came out the same must not change, or all that depends on it is linked again.
build_archive() {
	mkdir -p "$(dirname "$1")"
	go_archive "$1.new"
	rm -f "${1%.a}.a.h" "$(dirname "$1")/libmerutable.a.h"
	if [ -f "$1" ] && cmp -s "$1" "$1.new"; then
		rm "$1.new"
	else
		mv "$1.new" "$1"
	fi
}

# Linked here from the archive and not by `go build -buildmode=c-shared`: the flags take a path with a space, the
# extension and the library hold the same engine, and the signal guard comes along. Two things make it what c-shared
# would be: all of the archive, and nodelete, because a Go runtime cannot be unloaded.
build_shared() {
	folder=$(dirname "$1")
	archive=$folder/libmerutable.a
	guard=$folder/sigguard.o
	build_archive "$archive"
	map=duckdb-ext/shim/libmerutable.map
	if [ -f "$1" ] && [ "$1" -nt "$archive" ] && [ "$1" -nt "$map" ] && [ "$1" -nt duckdb-ext/shim/sigguard.c ]; then
		return 0
	fi
	cc=${CC:-cc}
	"$cc" -O2 -fPIC -fvisibility=hidden -c duckdb-ext/shim/sigguard.c -o "$guard"
	if [ "$(host_os)" = darwin ]; then
		"$cc" -dynamiclib -o "$1.new" -Wl,-force_load,"$archive" "$guard" -install_name @rpath/libmerutable.0.dylib \
			-Wl,-exported_symbol,'_meru_*' -framework CoreFoundation -framework Security -lresolv
	else
		"$cc" -shared -o "$1.new" -Wl,--whole-archive "$archive" -Wl,--no-whole-archive "$guard" \
			-Wl,-soname,libmerutable.so.0 -Wl,--version-script="$map" -Wl,-Bsymbolic -Wl,-z,defs -Wl,-z,nodelete \
			-Wl,--gc-sections -Wl,-s -lpthread -ldl -lm
		ln -sf libmerutable.so "$folder/libmerutable.so.0"
	fi
	rm "$guard"
	mv "$1.new" "$1"
}

case $kind in
archive) build_archive "$out" ;;
shared) build_shared "$out" ;;
*) die "build_engine.sh: unknown kind '$kind' (archive, shared)" ;;
esac
