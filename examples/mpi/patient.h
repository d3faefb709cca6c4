/* Waiting that leaves the processor to others, for programs of which many ranks share one. */
#include <mpi.h>
#include <stddef.h>
#include <time.h>

/* How long a rank that waits for messages sleeps before it looks again. */
enum { PATIENCE = 200 }; /* microseconds */

/* Sleeps for so many microseconds. */
static inline void rest(double microseconds) {
	struct timespec t = {(time_t)(microseconds / 1e6), 0};

	t.tv_nsec = (long)((microseconds - t.tv_sec * 1e6) * 1e3);
	while (nanosleep(&t, &t) != 0)
		; /* a signal: what is left */
}

/* Waits until all requests are done, asleep but for short looks. There is a status for each. */
static inline void await_all(int count, MPI_Request *requests, MPI_Status *statuses) {
	for (int done = 0;; rest(PATIENCE)) {
		MPI_Testall(count, requests, &done, statuses);
		if (done)
			return;
	}
}
