/* What the functions of merutable.h (exports*.c) have in common. Each refuses a forked child and hands over to its Go
 * half, merugo_…; handles cross as plain integers, because they are numbers and no addresses (handle.go). The compiler
 * checks these definitions against the header, and the calls against what cgo generated. */
#ifndef MERUTABLE_EXPORTS_H
#define MERUTABLE_EXPORTS_H

#include "capi.h"
#include "_cgo_export.h"

/* An out parameter as its Go half takes it: Go writes addresses of C memory there as integers, so that its garbage
 * collector never looks at what the caller's memory held before. */
#define OUT(p)    ((uintptr_t *)(p))
#define HANDLE(h) ((uintptr_t)(h))
#define REFUSE_FORKED(err)                                                                                             \
	do {                                                                                                               \
		if (capi_forked) {                                                                                             \
			return capi_refuse_forked(err);                                                                            \
		}                                                                                                              \
	} while (0)

#endif /* MERUTABLE_EXPORTS_H */
