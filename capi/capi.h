/* What the C and the Go half of this package share. */
#ifndef MERUTABLE_CAPI_H
#define MERUTABLE_CAPI_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "arrow_abi.h"
#include "merutable.h"

/* ---- fork.c: is this a forked child, where the Go runtime is dead? ---- */

/* Not 0 in a child that was forked after the library was loaded. Set by the child before fork() returns there. */
extern volatile int capi_forked;
/* Sets *err to the message about it and returns MeruStatus_ErrUnsupported. */
int capi_refuse_forked(char **err);

/* ---- object.c: results in C memory ---- */

/* A struct followed by the memory that it points to, which is freed with it: a zeroed root of root_size bytes, and room
 * for reserve more at *space. NULL when memory runs out. */
void *capi_object_new(size_t root_size, size_t reserve, void **space);
/* One more piece of zeroed memory that is freed with the root; NULL when memory runs out. */
void *capi_object_grow(void *root, size_t size);
/* Takes NULL. */
void capi_object_free(void *root);

/* A NUL-terminated copy for meru_free_string(); NULL when memory runs out. */
char *capi_string(const void *text, size_t len);

/* Buffers of Arrow arrays: of any content, aligned to 64 bytes. NULL when memory runs out. */
void *capi_buffer_new(size_t size);
void capi_buffer_free(void *buffer);

/* ---- arrow.c: Arrow structs across the border ---- */

/* Calls the release callback of an array that has one; takes NULL. */
void capi_array_release(struct ArrowArray *array);
/* Copies the tree of a borrowed schema into *out so that releasing the copy leaves the original alone: the structs are
 * new, the strings are borrowed, no struct has a release callback. Free it with capi_schema_copy_free(). Returns NULL,
 * or what is wrong with the schema. */
const char *capi_schema_copy(const struct ArrowSchema *schema, struct ArrowSchema *out);
void capi_schema_copy_free(struct ArrowSchema *copy);
/* Make the release callbacks of an exported struct and its children do nothing in a forked child. */
void capi_array_guard(struct ArrowArray *array);
void capi_schema_guard(struct ArrowSchema *schema);
/* Fills *out with a stream over the Go stream of that handle; not 0 when memory runs out. */
int capi_stream_new(uintptr_t handle, struct ArrowArrayStream *out);

/* ---- callbacks ---- */

static inline int capi_ask_interrupt(MeruInterruptFn interrupt, uintptr_t ctx) {
	return interrupt((void *)ctx);
}

static inline void capi_tell_progress(MeruProgressFn progress, uintptr_t ctx, double done) {
	progress((void *)ctx, done);
}

static inline void capi_tell_log(MeruLogFn fn, uintptr_t ctx, int64_t time_us, int32_t level, char *event, char *path,
								 char *message, char *fields) {
	MeruLogEvent e = {time_us, level, event, path, message, fields};
	fn((void *)ctx, &e);
}

#endif
