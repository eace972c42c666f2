#!/bin/sh
# build.sh debug|release              the extension
# build.sh capi [debug] [release]     libmerutable.a and libmerutable.so
set -eu
cd "$(dirname "$0")/.."
. scripts/lib.sh
use_tools

jobs=${MERUTABLE_JOBS:-2}

build_extension() {
	config=$1
	tree=build/cmake/$config
	root=$PWD
	# A checkout that was moved keeps caches that name the old place.
	if [ -f "$tree/CMakeCache.txt" ] && ! grep -qF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$tree/CMakeCache.txt"; then
		rm -rf "$tree"
	fi
	case $config in
	debug) type=Debug ;;
	release) type=Release ;;
	*) die "build.sh: unknown configuration '$config' (debug, release)" ;;
	esac
	launcher=
	if [ "${MERUTABLE_SCCACHE:-on}" != off ] && command -v sccache >/dev/null 2>&1; then
		launcher=sccache
	fi
	options="$type $launcher ${MERUTABLE_WORKSPACE:-} ${CC:-} ${CXX:-}"
	if [ ! -f "$tree/build.ninja" ] || ! stamped "cmake-$config" "$options"; then
		mkdir -p build/logs
		cmake -S . -B "$tree" -G Ninja -DCMAKE_BUILD_TYPE="$type" \
			-DMERUTABLE_ENGINE_DIR="$root/build/$config" \
			-DMERUTABLE_OUTPUT_DIR="$root/build/$config/extension/merutable" \
			-DPython3_EXECUTABLE="$root/build/venv/bin/python" \
			-DCMAKE_MAKE_PROGRAM="$root/build/venv/bin/ninja" \
			-DCMAKE_EXPORT_COMPILE_COMMANDS=ON \
			-DCMAKE_C_COMPILER_LAUNCHER="$launcher" -DCMAKE_CXX_COMPILER_LAUNCHER="$launcher" \
			>"build/logs/cmake-$config.log" 2>&1 || {
			tail_of "build/logs/cmake-$config.log"
			die "cmake failed (build/logs/cmake-$config.log)"
		}
		stamp "cmake-$config" "$options"
	fi
	ninja -C "$tree" -j "$jobs" --quiet
	say "build/$config/extension/merutable/merutable.duckdb_extension"
}

build_capi() {
	for config in "$@"; do
		sh scripts/build_engine.sh shared "$config" "build/$config/libmerutable.so"
		say "build/$config/libmerutable.a, build/$config/libmerutable.so"
	done
}

if [ "$1" = capi ]; then
	shift
	[ $# -gt 0 ] || set -- debug release
	with_lock build build_capi "$@"
else
	with_lock build build_extension "$1"
fi
