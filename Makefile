# Only for DuckDB's own extension build (.github/workflows/release.yml): it expects a checkout of DuckDB in duckdb/ and of
# extension-ci-tools in extension-ci-tools/. To build on your machine, use ./dev.
PROJ_DIR := $(dir $(abspath $(lastword $(MAKEFILE_LIST))))

EXT_NAME := merutable
EXT_CONFIG := $(PROJ_DIR)extension_config.cmake

include extension-ci-tools/makefiles/duckdb_extension.Makefile
