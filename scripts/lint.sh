#!/bin/sh
# lint.sh: every check, all of them run, failure at the end. lint.sh --fix: rewrite what can be rewritten.
set -eu
cd "$(dirname "$0")/.."
. scripts/lib.sh
use_tools

# Tracked and new files, without what git ignores.
files() {
	git ls-files --cached --others --exclude-standard -- "$@" | while IFS= read -r name; do
		[ ! -f "$name" ] || printf '%s\n' "$name"
	done
}

go_files() {
	# Generated code has its generator's style.
	files '*.go' | grep -v '\.pb\.go$' || true
}

cpp_files() {
	files 'capi/*.c' 'capi/*.h' 'include/*.h' 'duckdb-ext/*.c' 'duckdb-ext/*.h' 'duckdb-ext/*.cpp' 'duckdb-ext/*.hpp' \
		'tests/*.c' 'tests/*.h' 'tests/*.cpp' 'tests/*.hpp'
}

# each COMMAND…: run it with the names on standard input as arguments; names may hold spaces.
each() {
	tr '\n' '\0' | xargs -0 -r "$@"
}

for name in gofumpt staticcheck clang-format git nm; do
	command -v "$name" >/dev/null 2>&1 || die "$name is missing: ./dev check-env says where it comes from"
done

if [ "${1:-}" = --fix ]; then
	go_files | each gofumpt -w
	cpp_files | each clang-format -i
	exit 0
fi

failed=
check() {
	label=$1
	shift
	if "$@"; then
		say "lint: $label: ok"
	else
		say "lint: $label: FAILED"
		failed="$failed $label"
	fi
}

check_gofumpt() {
	unformatted=$(go_files | each gofumpt -l) || return 1
	[ -z "$unformatted" ] || {
		printf '%s\n' "$unformatted" | sed 's/^/    not formatted (.\/dev fmt): /' >&2
		return 1
	}
}

check_clang_format() {
	cpp_files | each clang-format --dry-run -Werror
}

check_exports() {
	build/venv/bin/python scripts/check_exports.py include/merutable.h build/release/libmerutable.so
}

check gofumpt check_gofumpt
check clang-format check_clang_format
check vet go vet ./...
check staticcheck staticcheck ./...
check exports check_exports
check flake sh scripts/check_flake.sh
check upstream sh scripts/check_upstream.sh
check versions sh scripts/check_versions.sh
[ -z "$failed" ] || die "lint failed:$failed"
