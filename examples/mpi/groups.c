/*
 * Each rank says which group and which links of its job it is in, and how many ranks are in
 * each communicator that topology.h makes of them. Each communicator is checked: those in it
 * must be of one group, or of one link, and all of these.
 */
#include <mpi.h>
#include <stdio.h>

#include "topology.h"

/* Whether all in a communicator have the same number. */
static int same(MPI_Comm comm, int number) {
	int said[2] = {number, -number}, least[2];

	MPI_Allreduce(said, least, 2, MPI_INT, MPI_MIN, comm);
	return least[0] == -least[1];
}

/* How many ranks have the same number at all; colours are few. */
static int with(int number) {
	int size, count = 0;

	MPI_Comm_size(MPI_COMM_WORLD, &size);
	int *all = malloc(size * sizeof *all);
	MPI_Allgather(&number, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD);
	for (int i = 0; i < size; i++)
		count += all[i] == number;
	free(all);
	return count;
}

int main(int argc, char **argv) {
	struct topology t;
	int rank, size, wrong, all_wrong, members, place;
	char line[4096];

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (topology_make(&t))
		MPI_Abort(MPI_COMM_WORLD, 2);

	MPI_Comm_size(t.group_comm, &members);
	MPI_Comm_rank(t.group_comm, &place);
	wrong = members != t.group_size || place != t.group_rank || !same(t.group_comm, rank - t.group_rank);
	int length = snprintf(line, sizeof line, "rank %d of %d: %s %d of %d", rank, size, *t.group ? t.group : "no group", place, members);
	for (int i = 0; i < t.depth; i++) {
		int count = with(t.link[i].colour);
		if (t.level[i] == MPI_COMM_NULL) {
			wrong += t.link[i].colour != MPI_UNDEFINED;
			length += snprintf(line + length, sizeof line - length, ", -");
			continue;
		}
		MPI_Comm_size(t.level[i], &members);
		wrong += members != count || !same(t.level[i], t.link[i].colour);
		length += snprintf(line + length, sizeof line - length, ", %s:%d of %d", t.link[i].name, t.link[i].colour, members);
	}
	snprintf(line + length, sizeof line - length, "\n");
	fputs(line, stdout); /* in one piece, also where standard output has no buffer */
	fflush(stdout);

	MPI_Allreduce(&wrong, &all_wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (rank == 0)
		printf("groups of %d ranks: %s\n", size, all_wrong ? "WRONG" : "verified");
	topology_free(&t);
	MPI_Finalize();
	return all_wrong != 0;
}
