/*
 * All ranks add up vectors of 1 to 256 Ki numbers, look for the largest of each place, and
 * check every result. The numbers are whole, so that the order of adding does not matter.
 *
 *     allreduce [ROUNDS]      default 50
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
	int rank, size, wrong = 0, all_wrong;
	int rounds = argc > 1 && atoi(argv[1]) > 0 ? atoi(argv[1]) : 50;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);

	for (int n = 1; n <= 1 << 18; n *= 8) {
		double *mine = malloc(n * sizeof *mine), *all = malloc(n * sizeof *all), took = 0;
		for (int round = 0; round < rounds; round++) {
			for (int i = 0; i < n; i++)
				mine[i] = rank + i + round;
			MPI_Barrier(MPI_COMM_WORLD);
			double start = MPI_Wtime();
			MPI_Allreduce(mine, all, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
			took += MPI_Wtime() - start;
			for (int i = 0; i < n; i++)
				wrong += all[i] != size * (size - 1.0) / 2 + size * ((double)i + round);
		}
		MPI_Allreduce(mine, all, n, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
		for (int i = 0; i < n; i++)
			wrong += all[i] != size - 1.0 + i + rounds - 1;
		if (rank == 0)
			printf("%8zu bytes: %10.2f us\n", n * sizeof *mine, took / rounds * 1e6);
		free(mine);
		free(all);
	}

	MPI_Allreduce(&wrong, &all_wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (rank == 0)
		printf("allreduce of %d ranks: %s\n", size, all_wrong ? "WRONG" : "verified");
	MPI_Finalize();
	return all_wrong != 0;
}
