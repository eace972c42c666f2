/* The smallest test kit: cases of checks, one line of output for each case, "PASS host: case (n checks)" or
 * "FAIL host: case: what". run.sh adds the lines up. C and C++. */
#ifndef HOSTS_CHECK_H
#define HOSTS_CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus /* C++ hosts have several files */
#define CHECK_SHARED inline
#else
#define CHECK_SHARED static __attribute__((unused))
#endif

CHECK_SHARED const char *check_host = "?";
CHECK_SHARED const char *check_case = "?";
CHECK_SHARED int check_count, check_failures, check_failed_cases;

#define CHECK(cond, ...)                                                                                               \
	do {                                                                                                               \
		check_count++;                                                                                                 \
		if (!(cond)) {                                                                                                 \
			check_failures++;                                                                                          \
			printf("FAIL %s: %s: %s:%d: %s: ", check_host, check_case, __FILE__, __LINE__, #cond);                     \
			printf(__VA_ARGS__);                                                                                       \
			printf("\n");                                                                                              \
			fflush(stdout);                                                                                            \
		}                                                                                                              \
	} while (0)

CHECK_SHARED void check_run(const char *name, void (*fn)(void)) {
	check_case = name;
	check_count = check_failures = 0;
	fn();
	if (check_failures) {
		check_failed_cases++;
	} else {
		printf("PASS %s: %s (%d checks)\n", check_host, name, check_count);
	}
	fflush(stdout);
}

/* A case that cannot run here, with the reason. */
CHECK_SHARED void check_skip(const char *name, const char *why) {
	printf("SKIP %s: %s: %s\n", check_host, name, why);
	fflush(stdout);
}

#endif
