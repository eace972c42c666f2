// Keeps a Go host's preemption signal alive.
//
// A Go runtime that starts inside a shared library installs its own SIGURG handler and does not pass the signal on. If
// the host is a Go program too, its garbage collector then waits for ever for a goroutine in a tight loop. So the
// host's action is saved before our Go runtime starts, and put back after. What our runtime loses in a Go host is
// asynchronous preemption: its goroutines yield at calls only. In every other host nothing changes.
#include "sigguard.h"

#include <signal.h>
#include <stddef.h>

static struct sigaction host_action;
static int host_action_saved;

// Priority 101 is the first that is free to use, and the Go archive's own initialiser has none: it runs later.
__attribute__((constructor(101))) static void merutable_sigguard_save(void) {
	host_action_saved = sigaction(SIGURG, NULL, &host_action) == 0;
}

// Initialisers without a priority run in link order, and the build links this file after the Go archive. Platforms that
// order them otherwise are covered by the extension's explicit call.
__attribute__((constructor)) static void merutable_sigguard_after_engine(void) {
	merutable_sigguard_restore();
}

__attribute__((visibility("hidden"))) void merutable_sigguard_restore(void) {
	if (!host_action_saved || host_action.sa_handler == SIG_DFL || host_action.sa_handler == SIG_IGN) {
		return;
	}
	sigaction(SIGURG, &host_action, NULL);
}
