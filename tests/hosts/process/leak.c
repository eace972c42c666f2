/* Shows that the leak check of the other hosts is not blind: leaks one message of the library, and must be told so. */
#include <stddef.h>

#include "merutable.h"

int main(void) {
	char *err = NULL;
	int status = meru_flush(NULL, &err);
	err = NULL; /* lost */
	return status == MeruStatus_ErrInvalidArg ? 0 : 3;
}
