# Recipes of the project. Run them through ./dev, which installs just itself. What is longer than a few lines is a script
# under scripts/.

set positional-arguments

export PATH := justfile_directory() / "build/bin" + ":" + justfile_directory() / "build/venv/bin" + ":" + env("PATH")

# go.mod names the toolchain; some installations would refuse to fetch it.
export GOTOOLCHAIN := env("GOTOOLCHAIN", "auto")

# Tests against real servers skip where those are missing: not in a recipe, which has fetched them.
export MERUTABLE_TEST_SERVERS := "required"

# The same flags in every Go command, so that all share one build cache: the C libraries are position-independent, so the
# tests are too, or the dependencies would be compiled twice (three minutes each on two cores).
export GOFLAGS := trim(env("GOFLAGS", "") + " -trimpath -buildvcs=false -buildmode=pie")

python := "build/venv/bin/python"

# The packages whose concurrency is worth the race detector's tenfold cost in every test run. Go refuses -race together
# with -buildmode=pie, so that these builds share the cache with no others.
race_packages := "./engine/..."

# (what `./dev` alone prints)
_default:
    @just --list --unsorted

# fetch what building needs and is not here: Python packages, Go, DuckDB's sources and static libraries
init:
    @sh scripts/init.sh

# the extension for debugging -> build/debug/extension/merutable/
build: init
    @sh scripts/build.sh debug

# the extension as it is shipped -> build/release/extension/merutable/
build-release: init
    @sh scripts/build.sh release

# libmerutable.a and libmerutable.so -> build/{debug,release}/
build-capi *configs='debug release': init
    @sh scripts/build.sh capi {{ configs }}

# what is installed, in which version, and what is missing
check-env: init
    @sh scripts/check_env.sh

# DuckDB's shell with the extension loaded
shell *args: build-release
    @sh scripts/shell.sh release "$@"

# remove what was built; what was fetched stays
clean:
    rm -rf build/debug build/release build/cmake build/logs

# remove what was fetched as well
clean-all: clean
    rm -rf third_party/duckdb/src third_party/duckdb/lib
    chmod -R u+w build && rm -rf build

# how well the compiler caches work, and how big they are
cache-stats:
    @sh scripts/cache_stats.sh

# where the extension is (debug or release)
ext-path config='release':
    @printf '%s\n' "{{ justfile_directory() }}/build/{{ config }}/extension/merutable/merutable.duckdb_extension"

# the tour on real data: 3 million flights, upserts, a crash, recovery
demo *args: build-release data
    @{{ python }} scripts/demo.py --ext "$(just ext-path)" --data build/data "$@"

# everything that CI runs
test: lint build-release (build-capi 'release') test-go test-parquet test-sql test-differential test-hosts race check-tls

# the Go tests
test-go *packages='./...': init _tools
    @gotestsum --format pkgname --format-hide-empty-pkg -- -timeout 20m {{ packages }}

# the SQL tests, inside DuckDB itself
test-sql *args: build-release
    @{{ python }} tests/sql/run.py --ext "$(just ext-path)" "$@"

# the same SQL on a merutable and on a native database: the scripts, and the same histories every time for so many seconds
test-differential seconds='30': build-release
    @{{ python }} tests/sql/differential.py --ext "$(just ext-path)" --seed 1 --scripts --placement mixed
    @{{ python }} tests/sql/differential.py --ext "$(just ext-path)" --seed 1 --seconds {{ seconds }}

# the same with arguments for tests/sql/differential.py; without a seed, other histories every time
differential *args: build-release
    @{{ python }} tests/sql/differential.py --ext "$(just ext-path)" "$@"

# our data files of every type against DuckDB's own Parquet reader
test-parquet: init
    @{{ python }} tests/parquet/check.py

# C, Python and other hosts against libmerutable.so and the extension
test-hosts *args: build-release (build-capi 'release') node
    @sh tests/hosts/run.sh "$@"

# Go tests under the race detector
race *packages=race_packages: init _tools
    @gotestsum --format pkgname --format-hide-empty-pkg -- -race -buildmode=default -short -timeout 20m {{ packages }}

# vet, staticcheck, gofumpt, clang-format, the header against the library's symbols, the flake
lint: init _tools (build-capi 'release')
    @sh scripts/lint.sh

# random histories under random options against a model, for so many minutes; other ones every time
metamorphic minutes='10' *args: init
    go test ./engine/metamorphic -timeout 0 -v -run 'TestLong|TestConcurrent' -minutes "$@"

# readers of a mirror against its primary, for so long: 10m, 3h
readers time='10m': init
    go test ./engine -timeout 0 -v -run 'TestReadersOfMirror' -readers "$1"

# write every file as lint wants it
fmt: init _tools
    @sh scripts/lint.sh --fix

# the thread-local storage of what we ship, against what a process has left for it
check-tls: build-release (build-capi 'release')
    @sh scripts/check_tls.sh build/release/extension/merutable/merutable.duckdb_extension build/release/libmerutable.so

# a benchmark program of bench/; without a name, which there are
bench *args: init
    @sh scripts/bench.sh "$@"

# the data that demo and tests use -> build/data
data: init
    @sh scripts/fetch_data.sh

# Node packages of the host tests -> build/node
node: init
    @sh scripts/fetch_node.sh

# pin the Python packages anew: after a change of scripts/*.in
lock-python: init
    @sh scripts/lock_python.sh

_tools: init
    @sh scripts/fetch_tools.sh
