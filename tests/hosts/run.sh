#!/bin/sh
# Hosts of the C interface, against a built library:
#
#   run.sh [LIBDIR]     the folder with libmerutable.so (default: build/release)
#
# Without LIBDIR the DuckDB hosts run too, where the extension was built (tests/hosts/duckdb). CC, CXX and PYTHON name
# the tools. The last line is "N passed, M failed, K skipped"; the exit status is not 0 when something failed.
# shellcheck disable=SC2086 # flags are lists
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
libdir=$(cd "${1:-$root/build/release}" && pwd) || exit 2
lib=$libdir/libmerutable.so
[ -f "$lib" ] || {
	echo "run.sh: $lib is missing: build it first (./dev build-capi)" >&2
	exit 2
}
CC=${CC:-gcc}
CXX=${CXX:-g++}
if [ -z "${PYTHON:-}" ]; then
	PYTHON=$root/build/venv/bin/python
	[ -x "$PYTHON" ] || PYTHON=python3
fi
work=$(mktemp -d "${TMPDIR:-/tmp}/merutable-hosts.XXXXXX") || exit 2
results=$work/results
: >"$results"
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

warn="-Wall -Wextra -Werror"
link="-L$libdir -lmerutable -Wl,-rpath,$libdir -lpthread"
# The checkers stop the program at the first finding, and look for leaks at its end. Go's own memory is not theirs: the
# library allocates with malloc() only what it hands out, and frees the rest, so no suppressions are needed.
sanitize="-fsanitize=address,undefined -fno-omit-frame-pointer"
export ASAN_OPTIONS=detect_leaks=1:exitcode=23
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
export PYTHONDONTWRITEBYTECODE=1

# The library is found by its soname.
[ -e "$libdir/libmerutable.so.0" ] || {
	ln -s "$lib" "$work/libmerutable.so.0"
	link="$link -Wl,-rpath,$work"
}

# A host that hangs is a failure.
limit=
! command -v timeout >/dev/null 2>&1 || limit="timeout -k 10 900"

pass() {
	echo "PASS $*" | tee -a "$results"
}

fail() {
	echo "FAIL $*" | tee -a "$results"
}

# host NAME COMMAND…: runs a host; its PASS, FAIL and SKIP lines count. A bad end without a FAIL line is one.
host() {
	name=$1
	shift
	mkdir -p "$work/$name"
	CHECK_HOST=$name $limit "$@" >"$work/$name.log" 2>&1
	status=$?
	cat "$work/$name.log"
	grep -E '^(PASS|FAIL|SKIP) ' "$work/$name.log" >>"$results"
	if [ $status -ne 0 ] && ! grep -q '^FAIL ' "$work/$name.log"; then
		fail "$name: ended with status $status"
	fi
	rm -rf "${work:?}/$name"
}

# builds NAME COMMAND…: a build that fails is a failure of its own.
builds() {
	name=$1
	shift
	"$@" >"$work/$name.build" 2>&1 && return 0
	cat "$work/$name.build"
	fail "$name: does not build"
	return 1
}

# cpp_build OUT FLAGS…: the C++ host, its files two at a time.
cpp_build() {
	out=$1
	shift
	for source in "$here"/cpp/*.cpp; do
		basename "$source" .cpp
	done | xargs -P 2 -I '{}' "$CXX" -std=c++17 $warn -O1 -g "$@" -I"$root/include" -c "$here/cpp/{}.cpp" -o "$out.{}.o" || return 1
	"$CXX" "$@" "$out".*.o -o "$out" $link
}

# ---- the header and the library ----

# The exported functions are those of the header, no more and no fewer.
"$CC" -E -P "$root/include/merutable.h" | grep -oE '\bmeru_[a-z_]+ *\(' | tr -d ' (' | sort -u >"$work/declared"
nm -D --defined-only "$lib" | awk '{ print $3 }' | sort -u >"$work/exported"
if [ -s "$work/declared" ] && diff "$work/declared" "$work/exported" >"$work/symbols.diff"; then
	pass "header: exports $(wc -l <"$work/declared") functions, those of the header"
else
	cat "$work/symbols.diff"
	fail "header: exported and declared functions differ"
fi

# Sizes and offsets of all structs; every struct of the header is in the list.
if builds layout "$CC" $warn -I"$root/include" "$here/layout.c" -o "$work/layout.bin"; then
	if "$work/layout.bin" | diff "$here/layout.golden" - >"$work/layout.diff"; then
		pass "header: layouts"
	else
		cat "$work/layout.diff"
		fail "header: layouts differ from layout.golden"
	fi
	missing=
	for struct in $(sed -nE 's/^\} (Meru[A-Za-z0-9]+);$/\1/p' "$root/include/merutable.h"); do
		grep -q "^$struct [0-9]" "$here/layout.golden" || missing="$missing $struct"
	done
	if [ -z "$missing" ]; then
		pass "header: every struct has a golden layout"
	else
		fail "header: no golden layout of$missing"
	fi
fi

echo '#include "merutable.h"' >"$work/alone.c"
cp "$work/alone.c" "$work/alone.cpp"
if builds header-c "$CC" -std=c99 -pedantic $warn -I"$root/include" -fsyntax-only "$work/alone.c" &&
	builds header-cpp "$CXX" -std=c++11 -pedantic $warn -I"$root/include" -fsyntax-only "$work/alone.cpp"; then
	pass "header: C99 and C++11 take it alone"
fi

# The program of docs/CAPI.md does what the page says.
awk '/^```c$/ { inside = 1; next } /^```$/ && inside { exit } inside' "$root/docs/CAPI.md" >"$work/example.c"
if builds example "$CC" -std=c11 $warn -I"$root/include" "$work/example.c" -o "$work/example.bin" $link; then
	if (cd "$work" && [ "$(./example.bin 2>&1)" = Ada ]); then
		pass "docs: the first program of CAPI.md"
	else
		fail "docs: the first program of CAPI.md"
	fi
fi

# ---- C: a client of the first generation ----

builds first "$CC" -std=gnu11 $warn -O1 -g "$here/first/client.c" -o "$work/first.bin" $link &&
	host first "$work/first.bin" "$work/first"
builds first-our-header "$CC" -std=gnu11 $warn -O1 -g -DOUR_HEADER -I"$root/include" "$here/first/client.c" \
	-o "$work/first-our-header.bin" $link &&
	host first-our-header "$work/first-our-header.bin" "$work/first-our-header"
builds first-sanitized "$CC" -std=gnu11 $warn -O1 -g $sanitize "$here/first/client.c" -o "$work/first-sanitized.bin" $link &&
	host first-sanitized "$work/first-sanitized.bin" "$work/first-sanitized"
if [ -f "$libdir/libmerutable.a" ]; then
	builds first-static "$CC" -std=gnu11 $warn -O1 -g "$here/first/client.c" -o "$work/first-static.bin" \
		"$libdir/libmerutable.a" -lpthread -ldl -lm &&
		host first-static "$work/first-static.bin" "$work/first-static"
fi

# ---- C++: everything, by our header ----

builds cpp cpp_build "$work/cpp.bin" && host cpp "$work/cpp.bin" "$work/cpp"
builds cpp-sanitized cpp_build "$work/cpp-sanitized.bin" $sanitize && host cpp-sanitized "$work/cpp-sanitized.bin" "$work/cpp-sanitized"

# The leak check must see a leak.
if builds leak "$CC" $warn -g $sanitize -I"$root/include" "$here/process/leak.c" -o "$work/leak.bin" $link; then
	"$work/leak.bin" >"$work/leak.log" 2>&1
	if [ $? -eq 23 ] && grep -q 'detected memory leaks' "$work/leak.log"; then
		pass "leak: a lost message is found"
	else
		cat "$work/leak.log"
		fail "leak: the leak check is blind"
	fi
fi

# ---- a host with signal handlers ----

builds signals "$CC" -std=gnu11 $warn -O1 -g "$here/process/signals.c" -o "$work/signals.bin" -ldl -lpthread &&
	host signals "$work/signals.bin" "$work/signals" "$lib"

# ---- Go: two Go runtimes in one process ----

# build_go OUT
build_go() {
	(cd "$here/go" && CGO_CFLAGS="-I$root/include" go build -trimpath -buildvcs=false -o "$1" .)
}

if command -v go >/dev/null 2>&1; then
	builds go build_go "$work/go.bin" && host go "$work/go.bin" "$lib" "$work/go"
else
	echo "SKIP go: there is no go command" | tee -a "$results"
fi

# ---- Python ----

if "$PYTHON" -c 'import pyarrow' 2>/dev/null; then
	host python "$PYTHON" "$here/python/client.py" "$lib" "$work/python"
else
	echo "SKIP python: $PYTHON has no pyarrow" | tee -a "$results"
fi

# ---- DuckDB ----

extension=$root/build/release/extension/merutable/merutable.duckdb_extension
if [ $# -eq 0 ] && [ -f "$extension" ] && [ -f "$here/duckdb/run.sh" ]; then
	if PYTHON=$PYTHON sh "$here/duckdb/run.sh" "$extension"; then
		pass "duckdb hosts"
	else
		fail "duckdb hosts"
	fi
fi

passed=$(grep -c '^PASS' "$results")
skipped=$(grep -c '^SKIP' "$results")
failed=$(grep -c '^FAIL' "$results")
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
