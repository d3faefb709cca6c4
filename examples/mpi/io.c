/* io [FILE]: all ranks open one file, by MPI I/O, and each writes its part of the numbers from 0
 * on; then each reads the part of another rank. Checks all numbers, and what the file has in all. */
#include <mpi.h>
#include <stdio.h>

#define N 1000

static void must(int error, const char *what)
{
	char text[MPI_MAX_ERROR_STRING];
	int length;

	if (error == MPI_SUCCESS)
		return;
	MPI_Error_string(error, text, &length);
	fprintf(stderr, "%s: %s\n", what, text);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "out.dat";
	int rank, size, wrong = 0, all, numbers[N];
	MPI_Offset part = sizeof numbers, bytes;
	MPI_File file;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	must(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file), "open");
	must(MPI_File_set_size(file, 0), "truncate");
	for (int i = 0; i < N; i++)
		numbers[i] = rank * N + i;
	must(MPI_File_write_at_all(file, rank * part, numbers, N, MPI_INT, MPI_STATUS_IGNORE), "write");
	must(MPI_File_sync(file), "sync");
	MPI_Barrier(MPI_COMM_WORLD);
	must(MPI_File_sync(file), "sync");
	int other = (rank + 1) % size;
	must(MPI_File_read_at_all(file, other * part, numbers, N, MPI_INT, MPI_STATUS_IGNORE), "read");
	for (int i = 0; i < N; i++)
		wrong += numbers[i] != other * N + i;
	must(MPI_File_get_size(file, &bytes), "size");
	wrong += bytes != size * part;
	must(MPI_File_close(&file), "close");
	MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank == 0)
		printf(all ? "io of %d ranks: %d WRONG\n" : "io of %d ranks: verified\n", size, all);
	MPI_Finalize();
	return rank == 0 && all;
}
