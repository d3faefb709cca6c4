/*
 * Each rank sends to the next one and receives from the one before, messages of 8
 * bytes to 2 MiB, and checks every byte; then all add their numbers up.
 *
 *     ring [ROUNDS]      default 50
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
	int rank, size, wrong = 0, all_wrong, sum;
	int rounds = argc > 1 ? atoi(argv[1]) : 50;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	int next = (rank + 1) % size, before = (rank + size - 1) % size;

	for (int bytes = 8; bytes <= 4 << 20; bytes *= 8) {
		unsigned char *out = malloc(bytes), *in = malloc(bytes);
		for (int i = 0; i < bytes; i++)
			out[i] = (unsigned char)(rank + i);
		MPI_Barrier(MPI_COMM_WORLD);
		double start = MPI_Wtime();
		for (int i = 0; i < rounds; i++)
			MPI_Sendrecv(out, bytes, MPI_BYTE, next, i, in, bytes, MPI_BYTE, before, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		double took = (MPI_Wtime() - start) / rounds;
		for (int i = 0; i < bytes; i++)
			wrong += in[i] != (unsigned char)(before + i);
		if (rank == 0)
			printf("%8d bytes: %10.2f us a step, %9.1f MB/s\n", bytes, took * 1e6, bytes / took / 1e6);
		free(out);
		free(in);
	}

	int mine = rank + 1;
	MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	wrong += sum != size * (size + 1) / 2;
	MPI_Allreduce(&wrong, &all_wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (rank == 0)
		printf("ring of %d ranks: %s\n", size, all_wrong ? "WRONG" : "verified");
	MPI_Finalize();
	return all_wrong != 0;
}
