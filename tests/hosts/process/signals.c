/* A host that has its own signal handlers before it loads the library:  signals DIR LIBRARY
 *
 * A Go runtime takes handlers of its own for the signals that faults raise, and passes on what is not Go's. The others
 * must stay the host's. The library cannot be unloaded: dlclose() must be harmless. */
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <unistd.h>

#include "../check.h"

typedef struct MeruHandle MeruHandle;
typedef struct MeruTableSchema MeruTableSchema;

static const char *dir, *library;
static void *lib;
static volatile sig_atomic_t seen[65];
static sigjmp_buf out_of_fault;

static void on_signal(int sig) {
	seen[sig]++;
}

static void on_fault(int sig) {
	seen[sig]++;
	siglongjmp(out_of_fault, 1);
}

static const int quiet_signals[] = {SIGINT,  SIGTERM, SIGHUP,  SIGCHLD,  SIGPROF,
									SIGUSR1, SIGUSR2, SIGALRM, SIGWINCH, SIGQUIT};
static const int fault_signals[] = {SIGSEGV, SIGBUS, SIGFPE};
enum {
	quiet_count = sizeof quiet_signals / sizeof *quiet_signals,
	fault_count = sizeof fault_signals / sizeof *fault_signals
};

static void install(int sig, void (*fn)(int)) {
	struct sigaction sa;
	memset(&sa, 0, sizeof sa);
	sa.sa_handler = fn;
	sigemptyset(&sa.sa_mask);
	sa.sa_flags = SA_ONSTACK; /* Go asks it of handlers that its threads may run */
	CHECK(sigaction(sig, &sa, NULL) == 0, "sigaction %d", sig);
}

/* Opens a database and writes through the loaded library, so that its runtime is busy. */
static void use_library(void) {
	int (*open_with)(const char *, const void *, MeruHandle **, char **);
	int (*close_free)(MeruHandle *, char **);
	void (*free_string)(char *);
	*(void **)&open_with = dlsym(lib, "meru_open_with");
	*(void **)&close_free = dlsym(lib, "meru_close_free");
	*(void **)&free_string = dlsym(lib, "meru_free_string");
	CHECK(open_with && close_free && free_string, "dlsym");
	for (int i = 0; i < 20; i++) {
		MeruHandle *db = NULL;
		char *err = NULL;
		char path[1024];
		snprintf(path, sizeof path, "%s/signals", dir);
		int status = open_with(path, NULL, &db, &err);
		CHECK(status == 0, "open: %d %s", status, err ? err : "");
		status = close_free(db, &err);
		CHECK(status == 0, "close: %d %s", status, err ? err : "");
		free_string(err);
	}
}

static void load(void) {
	for (int i = 0; i < quiet_count; i++) {
		install(quiet_signals[i], on_signal);
	}
	for (int i = 0; i < fault_count; i++) {
		install(fault_signals[i], on_fault);
	}
	lib = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	CHECK(lib, "%s", dlerror());
	use_library();
}

static void handlers_stay(void) {
	for (int i = 0; i < quiet_count; i++) {
		struct sigaction now;
		CHECK(sigaction(quiet_signals[i], NULL, &now) == 0 && now.sa_handler == on_signal,
			  "the handler of signal %d is another", quiet_signals[i]);
		raise(quiet_signals[i]);
		CHECK(seen[quiet_signals[i]] == 1, "signal %d came %d times", quiet_signals[i], (int)seen[quiet_signals[i]]);
	}
	for (int i = 0; i < fault_count; i++) {
		struct sigaction now;
		CHECK(sigaction(fault_signals[i], NULL, &now) == 0 && now.sa_flags & SA_ONSTACK,
			  "signal %d is not on its own stack", fault_signals[i]);
	}
}

/* Faults of the host itself reach the host's handler. */
static void faults_come_back(void) {
	if (!sigsetjmp(out_of_fault, 1)) {
		*(volatile int *)(uintptr_t)16 = 1;
	}
	CHECK(seen[SIGSEGV] == 1, "SIGSEGV came %d times", (int)seen[SIGSEGV]);
	if (!sigsetjmp(out_of_fault, 1)) {
		volatile int zero = 0, ten = 10;
		zero = ten / zero;
	}
#if defined(__x86_64__)
	CHECK(seen[SIGFPE] == 1, "SIGFPE came %d times", (int)seen[SIGFPE]);
#endif
	use_library();
}

static void *signal_storm(void *target) {
	for (int i = 0; i < 2000; i++) {
		pthread_kill(*(pthread_t *)target, SIGUSR1);
		usleep(50);
	}
	return NULL;
}

/* Signals that arrive while the thread is inside the library. */
static void signals_inside(void) {
	pthread_t self = pthread_self(), storm;
	seen[SIGUSR1] = 0;
	CHECK(pthread_create(&storm, NULL, signal_storm, &self) == 0, "thread");
	for (int i = 0; i < 5; i++) {
		use_library();
	}
	pthread_join(storm, NULL);
	CHECK(seen[SIGUSR1] > 0, "no signal came");
}

static void unloading(void) {
	CHECK(dlclose(lib) == 0, "dlclose");
	void *again = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
	CHECK(again, "the library was unloaded");
	lib = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	CHECK(lib, "loaded again");
	use_library();
}

int main(int argc, char **argv) {
	if (argc != 3) {
		fprintf(stderr, "usage: %s DIR LIBRARY\n", argv[0]);
		return 2;
	}
	check_host = "signals";
	dir = argv[1];
	library = argv[2];
	check_run("load with handlers", load);
	check_run("handlers stay the host's", handlers_stay);
	check_run("faults of the host", faults_come_back);
	check_run("signals inside the library", signals_inside);
	check_run("unloading", unloading);
	return check_failed_cases ? 1 : 0;
}
