#!/bin/sh
# Parses and evaluates flake.nix without a network: nixpkgs is replaced by the stub in tests/nix/stub.
set -eu
cd "$(dirname "$0")/.."
. scripts/lib.sh

install_nix() {
	command -v nix-instantiate >/dev/null 2>&1 && command -v nix >/dev/null 2>&1 && return 0
	if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null 2>&1; then
		say "Nix is missing: apt-get install nix-bin"
		mkdir -p build/logs
		{ apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends nix-bin; } \
			>build/logs/nix.log 2>&1 || {
			tail_of build/logs/nix.log
			die "could not install nix-bin (build/logs/nix.log)"
		}
		return 0
	fi
	die "Nix is missing (Debian: apt-get install nix-bin): flake.nix cannot be checked"
}

install_nix
# No group of build users: nothing is built, and Debian's package does not make the group.
export NIX_CONFIG='experimental-features = nix-command flakes
build-users-group ='
nix-instantiate --parse flake.nix >/dev/null
# In a folder that holds the flake alone: Nix copies the folder of a flake to its store, and ours has gigabytes in build/.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r tests/nix/stub "$work/stub"
mkdir "$work/flake"
cp flake.nix "$work/flake/"
nix flake check --offline --no-build --no-write-lock-file \
	--override-input nixpkgs "path:$work/stub" "path:$work/flake" >"$work/log" 2>&1 || {
	sed 's/^/    /' "$work/log" >&2
	die "nix flake check failed"
}
