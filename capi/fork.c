/* A Go runtime does not survive fork(): the child has only the thread that called it, while locks, the scheduler and
 * the collector wait for the others. Even entering Go may hang. So the check is made here, before Go is entered. */
#include <stdio.h>
#include <string.h>

#include "capi.h"

volatile int capi_forked = 0;

#if !defined(_WIN32)
#include <pthread.h>

static void mark_forked(void) {
	capi_forked = 1;
}

__attribute__((constructor)) static void watch_forks(void) {
	pthread_atfork(NULL, NULL, mark_forked);
}
#endif

int capi_refuse_forked(char **err) {
	static const char text[] =
		"merutable cannot be used in a forked child process, because its Go runtime does not survive "
		"fork(): use exec(), or fork before loading the library";
	if (err) {
		*err = malloc(sizeof text);
		if (*err) {
			memcpy(*err, text, sizeof text);
		}
	}
	return MeruStatus_ErrUnsupported;
}
