// Route DuckDB's allocator to libc.
//
// The prebuilt libduckdb_static.a calls jemalloc through these four names. Jemalloc brings 2.6 KiB of thread-local
// storage, and the Go archive forces all TLS of this module into the static TLS block of the process, where a library
// loaded at run time gets only a few hundred bytes. Defining the names here keeps jemalloc out of the link.
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define MERUTABLE_HIDDEN __attribute__((visibility("hidden")))

MERUTABLE_HIDDEN void *duckdb_je_malloc(size_t size) {
	return malloc(size);
}

MERUTABLE_HIDDEN void *duckdb_je_realloc(void *pointer, size_t size) {
	return realloc(pointer, size);
}

MERUTABLE_HIDDEN void duckdb_je_free(void *pointer) {
	free(pointer);
}

// DuckDB asks jemalloc to purge and reads counters; it lives with a refusal. The output is zeroed all the same, because
// a caller that ignores the result would otherwise use what was on its stack.
MERUTABLE_HIDDEN int duckdb_je_mallctl(const char *name, void *old_value, size_t *old_size, void *new_value,
									   size_t new_size) {
	(void)name;
	(void)new_value;
	(void)new_size;
	if (old_value && old_size) {
		memset(old_value, 0, *old_size);
	}
	return ENOENT;
}
