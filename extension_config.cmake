# Read by DuckDB's own build (EXTENSION_CONFIGS), which then includes our CMakeLists.txt.

duckdb_extension_load(merutable
    SOURCE_DIR ${CMAKE_CURRENT_LIST_DIR}
)

# Jemalloc's thread-local storage does not fit beside a Go runtime in a library that is loaded at run time
# (duckdb-ext/shim/jemalloc_shim.c). The first mention of an extension wins, so that DuckDB's own list does not bring it.
duckdb_extension_load(jemalloc DONT_BUILD)
