#!/bin/sh
# Installs the packages of scripts/node/package-lock.json (DuckDB for Node, and a foreign function interface) into
# build/node/node_modules.
set -eu
cd "$(dirname "$0")/.."
. scripts/lib.sh
use_tools

install_packages() {
	key=$(cat scripts/node/package.json scripts/node/package-lock.json | cksum)
	if stamped node "$key" && [ -d build/node/node_modules ]; then
		return 0
	fi
	sh scripts/ensure_node.sh
	say "Node packages of scripts/node/package-lock.json -> build/node"
	mkdir -p build/node build/logs
	cp scripts/node/package.json scripts/node/package-lock.json build/node/
	(cd build/node && npm ci --silent --no-audit --no-fund) >build/logs/node.log 2>&1 || {
		tail_of build/logs/node.log
		die "could not install the Node packages; is the npm registry reachable? (build/logs/node.log)"
	}
	stamp node "$key"
}

with_lock init install_packages
