#pragma once

#ifdef __cplusplus
extern "C" {
#endif

// Gives SIGURG back to a host that had a handler for it before this library was loaded. Harmless when called twice.
void merutable_sigguard_restore(void);

#ifdef __cplusplus
}
#endif
