/* Arrow structs across the border. Exported structs get callbacks in C around those of the Go Arrow library, because a
 * consumer in a forked child still releases what it holds, and must not enter Go for it. */
#include <errno.h>
#include <string.h>

#include "capi.h"
#include "_cgo_export.h"

void capi_array_release(struct ArrowArray *array) {
	if (array && array->release) {
		array->release(array);
	}
}

/* ---- borrowed schemas ---- */

/* Nested types stand 32 deep at most; a map is two levels here. */
enum { schema_depth_max = 72, schema_children_max = 1 << 16 };

static const char *copy_schema(const struct ArrowSchema *from, struct ArrowSchema *to, int depth) {
	*to = *from;
	to->release = NULL;
	to->private_data = NULL;
	to->children = NULL;
	to->n_children = 0;
	to->dictionary = NULL;
	if (depth > schema_depth_max) {
		return "it is nested too deep";
	}
	if (!from->format) {
		return "a format is NULL";
	}
	if (from->n_children < 0 || from->n_children > schema_children_max) {
		return "its number of children is out of range";
	}
	if (from->n_children > 0) {
		if (!from->children) {
			return "its children are NULL";
		}
		size_t n = (size_t)from->n_children;
		to->children = calloc(n, sizeof *to->children);
		if (!to->children) {
			return "memory ran out";
		}
		to->n_children = from->n_children;
		for (size_t i = 0; i < n; i++) {
			if (!from->children[i]) {
				return "a child is NULL";
			}
			to->children[i] = calloc(1, sizeof **to->children);
			if (!to->children[i]) {
				return "memory ran out";
			}
			const char *wrong = copy_schema(from->children[i], to->children[i], depth + 1);
			if (wrong) {
				return wrong;
			}
		}
	}
	if (from->dictionary) {
		to->dictionary = calloc(1, sizeof *to->dictionary);
		if (!to->dictionary) {
			return "memory ran out";
		}
		return copy_schema(from->dictionary, to->dictionary, depth + 1);
	}
	return NULL;
}

void capi_schema_copy_free(struct ArrowSchema *copy) {
	if (!copy) {
		return;
	}
	for (int64_t i = 0; i < copy->n_children; i++) {
		capi_schema_copy_free(copy->children[i]);
		free(copy->children[i]);
	}
	free(copy->children);
	capi_schema_copy_free(copy->dictionary);
	free(copy->dictionary);
	memset(copy, 0, sizeof *copy);
}

const char *capi_schema_copy(const struct ArrowSchema *schema, struct ArrowSchema *out) {
	memset(out, 0, sizeof *out);
	if (!schema->release) {
		return "it was released";
	}
	const char *wrong = copy_schema(schema, out, 0);
	if (wrong) {
		capi_schema_copy_free(out);
	}
	return wrong;
}

/* ---- exported structs ---- */

struct guarded_array {
	void (*release)(struct ArrowArray *);
	void *private_data;
};

static void release_guarded_array(struct ArrowArray *array) {
	struct guarded_array *g = array->private_data;
	if (!capi_forked) {
		array->release = g->release;
		array->private_data = g->private_data;
		g->release(array);
	}
	array->release = NULL;
	free(g);
}

void capi_array_guard(struct ArrowArray *array) {
	for (int64_t i = 0; i < array->n_children; i++) {
		capi_array_guard(array->children[i]);
	}
	struct guarded_array *g = malloc(sizeof *g);
	if (!g) {
		return; /* it works without, except in a forked child */
	}
	g->release = array->release;
	g->private_data = array->private_data;
	array->release = release_guarded_array;
	array->private_data = g;
}

struct guarded_schema {
	void (*release)(struct ArrowSchema *);
	void *private_data;
};

static void release_guarded_schema(struct ArrowSchema *schema) {
	struct guarded_schema *g = schema->private_data;
	if (!capi_forked) {
		schema->release = g->release;
		schema->private_data = g->private_data;
		g->release(schema);
	}
	schema->release = NULL;
	free(g);
}

void capi_schema_guard(struct ArrowSchema *schema) {
	for (int64_t i = 0; i < schema->n_children; i++) {
		capi_schema_guard(schema->children[i]);
	}
	struct guarded_schema *g = malloc(sizeof *g);
	if (!g) {
		return;
	}
	g->release = schema->release;
	g->private_data = schema->private_data;
	schema->release = release_guarded_schema;
	schema->private_data = g;
}

/* ---- streams ---- */

struct stream {
	uintptr_t handle;
	char *error; /* of the last call; NULL: it went well */
};

static int errno_of(int status) {
	switch (status) {
	case MeruStatus_Ok:
		return 0;
	case MeruStatus_ErrInvalidArg:
		return EINVAL;
	case MeruStatus_ErrCancelled:
		return ECANCELED;
	case MeruStatus_ErrUnsupported:
		return ENOTSUP;
	default:
		return EIO;
	}
}

static void forget_error(struct stream *s) {
	free(s->error);
	s->error = NULL;
}

static int stream_get_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out) {
	struct stream *s = stream->private_data;
	memset(out, 0, sizeof *out);
	forget_error(s);
	int status =
		capi_forked ? capi_refuse_forked(&s->error) : merugo_stream_schema(s->handle, out, (uintptr_t *)&s->error);
	return errno_of(status);
}

static int stream_get_next(struct ArrowArrayStream *stream, struct ArrowArray *out) {
	struct stream *s = stream->private_data;
	memset(out, 0, sizeof *out);
	forget_error(s);
	int status =
		capi_forked ? capi_refuse_forked(&s->error) : merugo_stream_next(s->handle, out, (uintptr_t *)&s->error);
	return errno_of(status);
}

static const char *stream_get_last_error(struct ArrowArrayStream *stream) {
	struct stream *s = stream->private_data;
	return s->error;
}

static void stream_release(struct ArrowArrayStream *stream) {
	struct stream *s = stream->private_data;
	if (!capi_forked) {
		merugo_stream_free(s->handle);
	}
	forget_error(s);
	free(s);
	stream->private_data = NULL;
	stream->release = NULL;
}

int capi_stream_new(uintptr_t handle, struct ArrowArrayStream *out) {
	struct stream *s = calloc(1, sizeof *s);
	if (!s) {
		return -1;
	}
	s->handle = handle;
	out->get_schema = stream_get_schema;
	out->get_next = stream_get_next;
	out->get_last_error = stream_get_last_error;
	out->release = stream_release;
	out->private_data = s;
	return 0;
}
