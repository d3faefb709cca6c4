/*
 * Two remedies for MPICH programs, whose ranks talk by UCX. Loaded by LD_PRELOAD, it
 * defines nothing but functions of UCX, and passes them on where no variable asks for a
 * remedy, so that programs without MPI, and with another one, do not notice it.
 *
 * ZORILLA_MPI_FINISH=1 lets ranks that talk over TCP end. In MPI_Finalize each of them
 * closes its endpoints, which needs the other end to answer, and then waits for all
 * others in a barrier of PMI, where it answers nobody: with three or more ranks one often
 * waits for an answer for ever, and the others for it (MPICH 4.0 with UCX 1.13). With
 * this, before the first close it waits until all ranks have come so far, by a barrier of
 * PMI of its own, and answers the others meanwhile: from then on nobody needs anything
 * from anybody, for a rank that is in MPI_Finalize has all that it was to receive. So no
 * endpoint need be closed politely: each goes with its worker.
 *
 * ZORILLA_MPI_YIELD=1 is for processors that others want, too: who has looked for messages a
 * few times, and found none, lets others have the processor. Those it waits for may need
 * it; else they get it only at the next tick of the scheduler, some milliseconds later.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PUBLIC __attribute__((visibility("default")))

/* Those of the oldest C library; newer ones have them under this name too. */
#if defined(__x86_64__)
__asm__(".symver dlsym,dlsym@GLIBC_2.2.5");
__asm__(".symver dladdr,dladdr@GLIBC_2.2.5");
__asm__(".symver dlopen,dlopen@GLIBC_2.2.5");
#elif defined(__aarch64__)
__asm__(".symver dlsym,dlsym@GLIBC_2.17");
__asm__(".symver dladdr,dladdr@GLIBC_2.17");
__asm__(".symver dlopen,dlopen@GLIBC_2.17");
#endif

enum {
	MOST_WORKERS = 64,
	PATIENCE = 10, /* times to look for messages before others are let go on */
	UCS_ERR_UNSUPPORTED = -22,
};

PUBLIC const char zorilla_mpi_source[] = "zorilla-mpi-source sha256:" SOURCE;

static void *workers[MOST_WORKERS];
static int made;
static int finishing;

/* UCX's own function. Where MPI is a part of something that was loaded later, as in
 * Python, this library is before UCX for whoever calls it, but UCX is not behind this. */
static void *ucx(const char *name) {
	void *f = dlsym(RTLD_NEXT, name), *its;
	if (!f && (its = dlopen("libucp.so.0", RTLD_LAZY | RTLD_NOLOAD)))
		f = dlsym(its, name);
	return f;
}

/* Whether the code at this place is that of an MPI library that is MPICH. */
static int by_mpich(void *place) {
	Dl_info from, mpi;
	void *its, *end;
	if (!dladdr(place, &from) || !from.dli_fname || !(its = dlopen(from.dli_fname, RTLD_LAZY | RTLD_NOLOAD)))
		return 0;
	end = dlsym(its, "PMPI_Finalize");
	return end && dladdr(end, &mpi) && from.dli_fbase == mpi.dli_fbase && dlsym(its, "MPII_Version_string");
}

static int asked(const char *remedy) {
	const char *v = getenv(remedy);
	return v && !strcmp(v, "1");
}

static int manager; /* the descriptor of PMI */

PUBLIC int ucp_worker_create(void *context, const void *params, void **worker) {
	int (*next)(void *, const void *, void **) = ucx("ucp_worker_create");
	if (!next)
		return UCS_ERR_UNSUPPORTED;
	int rc = next(context, params, worker);
	const char *fd = getenv("PMI_FD"); /* later the program may have cleared it */
	if (rc == 0 && made < MOST_WORKERS && asked("ZORILLA_MPI_FINISH") && fd && by_mpich(__builtin_return_address(0))) {
		manager = atoi(fd);
		workers[made++] = *worker;
	}
	return rc;
}

static unsigned (*next_progress)(void *);
static int yields;

static unsigned look(void *worker) {
	if (!next_progress) {
		yields = asked("ZORILLA_MPI_YIELD");
		next_progress = ucx("ucp_worker_progress");
	}
	return next_progress ? next_progress(worker) : 0;
}

PUBLIC unsigned ucp_worker_progress(void *worker) {
	static int idle; /* of several threads, which may err by a few */
	unsigned moved = look(worker);
	if (moved || !yields)
		idle = 0;
	else if (++idle > PATIENCE)
		sched_yield();
	return moved;
}

/* A barrier of PMI, during which the workers go on; 0 when all have come. */
static int together(int fd) {
	static const char ask[] = "cmd=barrier_in\n", told[] = "cmd=barrier_out";
	char line[sizeof told], c;
	size_t n = 0;
	int idle = 0;
	if (send(fd, ask, sizeof ask - 1, MSG_NOSIGNAL) != sizeof ask - 1)
		return -1;
	for (;;) {
		unsigned moved = 0;
		for (int i = 0; i < made; i++)
			moved += look(workers[i]);
		/* Who has nothing to do for others leaves them the processor. */
		idle = moved ? 0 : idle + 1;
		struct pollfd p = {.fd = fd, .events = POLLIN};
		int ready = poll(&p, 1, idle > 100);
		if (ready < 0 && errno != EINTR)
			return -1;
		if (ready <= 0)
			continue;
		if (recv(fd, &c, 1, 0) != 1)
			return -1;
		if (c == '\n')
			return n >= sizeof told - 1 && !memcmp(line, told, sizeof told - 1) ? 0 : -1;
		if (n < sizeof line)
			line[n++] = c;
	}
}

PUBLIC void *ucp_disconnect_nb(void *endpoint) {
	void *(*next)(void *) = ucx("ucp_disconnect_nb");
	if (made == 0 || !by_mpich(__builtin_return_address(0)))
		return next ? next(endpoint) : (void *)(intptr_t)UCS_ERR_UNSUPPORTED;
	if (!finishing) {
		finishing = 1;
		/* Without the node nobody is left to wait for: it ends its ranks. */
		if (together(manager) != 0)
			_exit(1);
	}
	return NULL; /* closed */
}
