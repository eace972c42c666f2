#!/bin/sh
# Installs the Go tools of scripts/tools/go.mod into build/bin.
set -eu
cd "$(dirname "$0")/.."
. scripts/lib.sh
use_tools

install_tools() {
	key=$(cat scripts/tools/go.mod scripts/tools/go.sum | cksum)
	if stamped tools "$key"; then
		return 0
	fi
	say "Go tools of scripts/tools/go.mod -> build/bin"
	mkdir -p build/bin build/logs
	bin=$PWD/build/bin
	(cd scripts/tools && GOBIN=$bin go install -trimpath -ldflags='-s -w' tool) >build/logs/tools.log 2>&1 || {
		tail_of build/logs/tools.log
		die "could not install the Go tools; is the Go module proxy reachable? (build/logs/tools.log)"
	}
	# Its package is called like any other server's.
	mv build/bin/server build/bin/toxiproxy
	stamp tools "$key"
}

with_lock init install_tools
