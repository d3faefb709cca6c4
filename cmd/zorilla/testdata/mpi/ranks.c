/* ranks WHAT: adds up all ranks, and ends as it is told. Rank 1 says when it fails, in
 * milliseconds of the clock. A deaf rank waits for its neighbour, does not heed SIGTERM, and ends
 * with 7 by SIGUSR1. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void quit(int number) { _exit(number == SIGUSR1 ? 7 : 1); }

int main(int argc, char **argv)
{
	const char *what = argv[argc - 1];
	int rank, size, sum, first, nodes, none;
	MPI_Comm node;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (strcmp(what, "sum") == 0) {
		MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
		MPI_Comm_rank(node, &first);
		first = first == 0;
		MPI_Reduce(&first, &nodes, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
		if (rank == 0)
			printf("sum %d, %d nodes", sum, nodes), fflush(stdout);
		MPI_Finalize();
		return 0;
	}
	if (argc > 2 && strcmp(argv[1], "env") == 0) {
		if (rank == 0)
			printf("%s", getenv(what)), fflush(stdout);
		MPI_Finalize();
		return 0;
	}
	if (strcmp(what, "deaf") == 0) {
		signal(SIGTERM, SIG_IGN), signal(SIGUSR1, quit);
		MPI_Barrier(MPI_COMM_WORLD);
	}
	if (rank == 0)
		puts("begun"), fflush(stdout);
	if (strcmp(what, "deaf") == 0)
		MPI_Recv(&none, 1, MPI_INT, (rank + 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	if (rank == 1 && strcmp(what, "wait") != 0) {
		struct timespec now;
		clock_gettime(CLOCK_REALTIME, &now);
		printf("fails at %lld\n", now.tv_sec * 1000LL + now.tv_nsec / 1000000), fflush(stdout);
	}
	if (rank == 1 && strcmp(what, "exit") == 0)
		_exit(7);
	if (rank == 1 && strcmp(what, "zero") == 0)
		_exit(0);
	if (rank == 1 && strcmp(what, "abort") == 0)
		MPI_Abort(MPI_COMM_WORLD, 42);
	if (rank == 1 && strcmp(what, "kill") == 0)
		raise(SIGKILL);
	if (rank != 1 && strcmp(what, "wait") != 0)
		MPI_Recv(&none, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	for (;;)
		pause();
}
