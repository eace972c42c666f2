/* Results in C memory: a root struct and a list of blocks that live as long as it. No Go memory is ever handed out. */
#include "capi.h"

/* Keeps what follows it aligned for every type. */
struct block {
	struct block *next;
	size_t unused;
};

static struct block *new_block(size_t size) {
	if (size > SIZE_MAX - sizeof(struct block)) {
		return NULL;
	}
	return calloc(1, sizeof(struct block) + size);
}

void *capi_object_new(size_t root_size, size_t reserve, void **space) {
	root_size = (root_size + 15) & ~(size_t)15;
	if (reserve > SIZE_MAX - root_size) {
		return NULL;
	}
	struct block *b = new_block(root_size + reserve);
	if (!b) {
		return NULL;
	}
	char *root = (char *)(b + 1);
	*space = root + root_size;
	return root;
}

void *capi_object_grow(void *root, size_t size) {
	struct block *first = (struct block *)root - 1;
	struct block *b = new_block(size);
	if (!b) {
		return NULL;
	}
	b->next = first->next;
	first->next = b;
	return b + 1;
}

void capi_object_free(void *root) {
	if (!root) {
		return;
	}
	struct block *b = (struct block *)root - 1;
	while (b) {
		struct block *next = b->next;
		free(b);
		b = next;
	}
}

char *capi_string(const void *text, size_t len) {
	char *copy = malloc(len + 1);
	if (copy) {
		if (len) {
			memcpy(copy, text, len);
		}
		copy[len] = 0;
	}
	return copy;
}

enum { buffer_alignment = 64 };

/* The address that malloc() gave is kept in the word before the buffer. */
void *capi_buffer_new(size_t size) {
	const size_t extra = buffer_alignment + sizeof(void *);
	if (size > SIZE_MAX - extra) {
		return NULL;
	}
	char *raw = malloc(size + extra);
	if (!raw) {
		return NULL;
	}
	uintptr_t at = ((uintptr_t)raw + extra - 1) & ~(uintptr_t)(buffer_alignment - 1);
	((void **)at)[-1] = raw;
	return (void *)at;
}

void capi_buffer_free(void *buffer) {
	if (buffer) {
		free(((void **)buffer)[-1]);
	}
}
