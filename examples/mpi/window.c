/* One-sided communication: each rank puts its number into a window of the next one, adds to a
   counter of rank 0, and reads what the one before has put. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv) {
	int rank, size, counter = 0, one = 1, before, total = 0, *mine;
	MPI_Win window;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Alloc_mem(2 * sizeof *mine, MPI_INFO_NULL, &mine);
	MPI_Win_create(mine, 2 * sizeof *mine, sizeof *mine, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
	mine[0] = -1;
	mine[1] = 0;
	MPI_Win_fence(0, window);
	MPI_Put(&rank, 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT, window);
	MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
	before = mine[0];
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
	MPI_Fetch_and_op(&one, &counter, MPI_INT, 0, 1, MPI_SUM, window);
	MPI_Win_unlock(0, window);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0) {
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
		total = mine[1];
		MPI_Win_unlock(0, window);
	}
	int right = before == (rank + size - 1) % size && counter >= 0 && counter < size && (rank != 0 || total == size), all;
	MPI_Allreduce(&right, &all, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
	if (rank == 0)
		printf("window of %d ranks: %s\n", size, all ? "verified" : "WRONG");
	MPI_Win_free(&window);
	MPI_Free_mem(mine);
	MPI_Finalize();
	return !all;
}
