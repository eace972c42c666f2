#!/bin/sh
# Writes scripts/requirements*.txt, with the hashes of every file for every platform, from scripts/requirements*.in.
set -eu
cd "$(dirname "$0")/.."
. scripts/lib.sh

uv_version=0.13.9
[ -x build/uv/bin/uv ] || {
	say "uv $uv_version -> build/uv"
	build/venv/bin/python -m pip install --quiet --no-deps --target build/uv "uv==$uv_version"
}
for input in scripts/requirements*.in; do
	build/uv/bin/uv pip compile --quiet --universal --no-deps --generate-hashes --no-annotate --no-header \
		--python-version 3.10 "$input" -o "${input%.in}.txt"
	say "${input%.in}.txt"
done
