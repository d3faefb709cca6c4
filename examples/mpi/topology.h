/*
 * The groups and links of a zorilla job as MPI communicators.
 *
 *     struct topology t;
 *     if (topology_make(&t)) MPI_Abort(MPI_COMM_WORLD, 2);   // all ranks call it, after MPI_Init
 *     MPI_Allreduce(..., t.group_comm);                      // the ranks of the own group
 *     MPI_Bcast(..., t.level[0]);                            // those of the widest link that the own group is in
 *     topology_free(&t);
 *
 * It reads ZORILLA_GROUP, ZORILLA_GROUP_RANK, ZORILLA_GROUP_SIZE, ZORILLA_TOPOLOGY_DEPTH and
 * ZORILLA_TOPOLOGY_COLORS ("PCG4:3 PCG1:0"; "-" = in no link at this level). Without them the
 * whole program is one group, in no link.
 */
#ifndef ZORILLA_TOPOLOGY_H
#define ZORILLA_TOPOLOGY_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOPOLOGY_LEVELS 64 /* a job has at most so many links */
#define TOPOLOGY_NAME 32   /* bytes of a name */

struct topology {
	char group[TOPOLOGY_NAME + 1]; /* "" without groups */
	int group_rank, group_size;
	MPI_Comm group_comm;

	int depth; /* levels of links, the widest is level 0 */
	struct {
		char name[TOPOLOGY_NAME + 1]; /* "-" = in no link */
		int colour;                   /* MPI_UNDEFINED there */
	} link[TOPOLOGY_LEVELS];
	MPI_Comm level[TOPOLOGY_LEVELS]; /* MPI_COMM_NULL there */
};

/* A number from 0 on of a variable, -1 if it has none. */
static inline int topology_number(const char *text) {
	char *end;
	long n = text ? strtol(text, &end, 10) : -1;
	return text && *text && !*end && n >= 0 && n < 1 << 30 ? (int)n : -1;
}

/* Reads the variables; returns 0, or -1 if they make no sense. */
static inline int topology_read(struct topology *t) {
	const char *group = getenv("ZORILLA_GROUP"), *colours = getenv("ZORILLA_TOPOLOGY_COLORS");
	memset(t, 0, sizeof *t);
	if (!group) {
		MPI_Comm_rank(MPI_COMM_WORLD, &t->group_rank);
		MPI_Comm_size(MPI_COMM_WORLD, &t->group_size);
		return 0;
	}
	t->group_rank = topology_number(getenv("ZORILLA_GROUP_RANK"));
	t->group_size = topology_number(getenv("ZORILLA_GROUP_SIZE"));
	t->depth = topology_number(getenv("ZORILLA_TOPOLOGY_DEPTH"));
	if (strlen(group) > TOPOLOGY_NAME || t->group_rank < 0 || t->group_size <= t->group_rank ||
	    t->depth < 0 || t->depth > TOPOLOGY_LEVELS || !colours)
		return -1;
	strcpy(t->group, group);
	for (int i = 0; i < t->depth; i++) {
		int length = (int)strcspn(colours += strspn(colours, " "), ": ");
		if (length == 0 || length > TOPOLOGY_NAME)
			return -1;
		memcpy(t->link[i].name, colours, length);
		colours += length;
		t->link[i].colour = MPI_UNDEFINED;
		if (strcmp(t->link[i].name, "-") != 0) {
			char number[12] = "";
			length = *colours == ':' ? (int)strcspn(++colours, " ") : 0;
			if (length == 0 || length >= (int)sizeof number)
				return -1;
			memcpy(number, colours, length);
			colours += length;
			if ((t->link[i].colour = topology_number(number)) < 0)
				return -1;
		}
	}
	return colours[strspn(colours, " ")] ? -1 : 0;
}

/* Makes the communicators, in the order of ranks. Returns 0, or at all ranks -1, after a message, if the
 * variables of one make no sense. */
static inline int topology_make(struct topology *t) {
	int rank, wrong = topology_read(t) != 0, depth = wrong ? 0 : t->depth, said[3], least[3];

	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	said[0] = -wrong, said[1] = depth, said[2] = -depth;
	MPI_Allreduce(said, least, 3, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
	if (wrong || (!least[0] && least[1] != -least[2] && rank == 0))
		fprintf(stderr, "rank %d: ZORILLA_GROUP... and ZORILLA_TOPOLOGY... make no sense\n", rank);
	if (least[0] || least[1] != -least[2])
		return -1;
	for (int i = 0; i < depth; i++)
		MPI_Comm_split(MPI_COMM_WORLD, t->link[i].colour, rank, &t->level[i]);
	/* The ranks of a group are consecutive, so that its first one tells it apart. */
	MPI_Comm_split(MPI_COMM_WORLD, rank - t->group_rank, rank, &t->group_comm);
	return 0;
}

/* The communicator of the smallest link that the own group is in; that of the group if it is in none. */
static inline MPI_Comm topology_smallest(const struct topology *t) {
	for (int i = t->depth - 1; i >= 0; i--)
		if (t->level[i] != MPI_COMM_NULL)
			return t->level[i];
	return t->group_comm;
}

static inline void topology_free(struct topology *t) {
	for (int i = 0; i < t->depth; i++)
		if (t->level[i] != MPI_COMM_NULL)
			MPI_Comm_free(&t->level[i]);
	MPI_Comm_free(&t->group_comm);
}

#endif
