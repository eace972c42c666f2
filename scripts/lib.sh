# Shared by the shell scripts: sourced, POSIX sh. Expects to run in the repository root.
# shellcheck shell=sh

say() {
	printf '%s\n' "merutable: $*" >&2
}

die() {
	say "$@"
	exit 1
}

# pin NAME: a value of third_party/duckdb/pins.env.
pin() {
	pin_value=$(sed -n "s/^$1=//p" third_party/duckdb/pins.env)
	[ -n "$pin_value" ] || die "third_party/duckdb/pins.env has no $1"
	printf '%s\n' "$pin_value"
}

sha256_of() {
	if command -v sha256sum >/dev/null 2>&1; then
		sha256sum "$1" | cut -d' ' -f1
	else
		shasum -a 256 "$1" | cut -d' ' -f1
	fi
}

# check_sha256 FILE WANTED: a download that differs is never used.
check_sha256() {
	check_found=$(sha256_of "$1")
	[ "$check_found" = "$2" ] || die "$1 has SHA-256 $check_found, but $2 is pinned: not using it"
}

# stamped NAME KEY: whether step NAME was done for exactly this KEY. stamp NAME KEY records it.
stamped() {
	[ -f "build/stamps/$1" ] && [ "$(cat "build/stamps/$1")" = "$2" ]
}

stamp() {
	mkdir -p build/stamps
	printf '%s\n' "$2" >"build/stamps/$1.new"
	mv "build/stamps/$1.new" "build/stamps/$1"
}

# host_os, host_arch: in Go's words, which are also those of the prebuilt libraries.
host_os() {
	case $(uname -s) in
	Linux) echo linux ;;
	Darwin) echo darwin ;;
	*) die "$(uname -s) is not supported: Linux and macOS are" ;;
	esac
}

host_arch() {
	case $(uname -m) in
	x86_64 | amd64) echo amd64 ;;
	aarch64 | arm64) echo arm64 ;;
	*) die "$(uname -m) is not supported: amd64 and arm64 are" ;;
	esac
}

# tail_of LOG: the end of a failed step's log, indented, so that the reader sees the tool's own words.
tail_of() {
	tail -n 15 "$1" | sed 's/^/    /' >&2
}

# with_lock NAME COMMAND…: one at a time in this checkout. Two terminals may run ./dev at once, and neither pip nor ninja
# guards its folder.
with_lock() {
	lock_name=$1
	shift
	mkdir -p build
	lock_dir=build/.lock-$lock_name
	lock_told=
	until mkdir "$lock_dir" 2>/dev/null; do
		lock_pid=$(cat "$lock_dir/pid" 2>/dev/null || true)
		if [ -n "$lock_pid" ] && ! kill -0 "$lock_pid" 2>/dev/null; then
			rm -rf "$lock_dir"
			continue
		fi
		[ -n "$lock_told" ] || say "waiting for process ${lock_pid:-?}, which holds $lock_dir"
		lock_told=yes
		sleep 1
	done
	echo $$ >"$lock_dir/pid"
	trap 'rm -rf "$lock_dir"' EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	# A subshell of its own, and not `"$@" ||`, because a shell ignores set -e in a command whose status is tested.
	set +e
	(
		set -e
		"$@"
	)
	lock_status=$?
	set -e
	rm -rf "$lock_dir"
	trap - EXIT INT TERM
	return "$lock_status"
}

# use_tools: our own tools first on PATH, and a Go toolchain that may follow go.mod.
use_tools() {
	PATH=$PWD/build/bin:$PWD/build/venv/bin:$PATH
	# Some installations pin GOTOOLCHAIN to "local"; go.mod decides here.
	GOTOOLCHAIN=${GOTOOLCHAIN:-auto}
	# A server of this checkout's own: it is told at its start which folder to cut from paths, which is what lets a fresh
	# clone hit what another compiled.
	SCCACHE_BASEDIRS=$PWD
	SCCACHE_SERVER_UDS=${TMPDIR:-/tmp}/merutable-sccache-$(id -u)-$(printf %s "$PWD" | cksum | cut -d' ' -f1)
	SCCACHE_IDLE_TIMEOUT=300
	export PATH GOTOOLCHAIN SCCACHE_BASEDIRS SCCACHE_SERVER_UDS SCCACHE_IDLE_TIMEOUT
}
