/*
 * Integer sort, in the style of the NAS benchmark IS: each rank makes its part of a
 * sequence of random keys and gives every other one those that belong to it, so that
 * all lie sorted over the ranks. It lives by MPI_Alltoallv.
 *
 *     is [LOG2 OF THE KEYS [TIMES]]      default 22 10
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "random.h"

enum { KEY_BITS = 19 };

static void *array(uint64_t n, size_t each) {
	void *p = calloc(n ? n : 1, each);
	if (!p) {
		fprintf(stderr, "is: not enough memory\n");
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	return p;
}

/* The rank that a key belongs to. */
static int owner(uint32_t key, int size) { return (int)(((uint64_t)key * size) >> KEY_BITS); }

/* Puts the places where the parts begin, and returns where the last one ends. */
static int places(const int *counts, int *at, int size) {
	int n = 0;
	for (int i = 0; i < size; i++) {
		at[i] = n;
		n += counts[i];
	}
	return n;
}

/* Sorts all keys over the ranks; returns this rank's, and how many they are. */
static uint32_t *sort(const uint32_t *keys, int n, int size, int *got) {
	int *counts = array(4 * size, sizeof(int)), *at = counts + size, *their = at + size, *from = their + size;
	uint32_t *parted = array(n, sizeof *parted);
	for (int i = 0; i < n; i++)
		counts[owner(keys[i], size)]++;
	places(counts, at, size);
	for (int i = 0; i < n; i++)
		parted[at[owner(keys[i], size)]++] = keys[i];
	places(counts, at, size);

	MPI_Alltoall(counts, 1, MPI_INT, their, 1, MPI_INT, MPI_COMM_WORLD);
	*got = places(their, from, size);
	uint32_t *mine = array(*got, sizeof *mine);
	MPI_Alltoallv(parted, counts, at, MPI_UINT32_T, mine, their, from, MPI_UINT32_T, MPI_COMM_WORLD);

	/* There are few different keys: they are counted, and written down so often. */
	uint32_t *times = array(1 << KEY_BITS, sizeof *times);
	for (int i = 0; i < *got; i++)
		times[mine[i]]++;
	for (uint32_t key = 0, i = 0; key < 1 << KEY_BITS; key++)
		for (uint32_t k = times[key]; k > 0; k--)
			mine[i++] = key;
	free(times);
	free(parted);
	free(counts);
	return mine;
}

/* What keys have in common in any order: how many, their sum, and that of a hash. */
static void digest(const uint32_t *keys, int n, uint64_t d[3]) {
	d[0] = n;
	d[1] = d[2] = 0;
	for (int i = 0; i < n; i++) {
		d[1] += keys[i];
		d[2] += random_at(keys[i]);
	}
}

/* Whether the sorted keys are those of before, none lost or changed, and in order,
 * also from rank to rank. */
static int verify(const uint32_t *keys, int n, const uint32_t *mine, int got, int rank, int size) {
	uint64_t d[6], all[6];
	int wrong = 0, all_wrong;
	digest(keys, n, d);
	digest(mine, got, d + 3);
	MPI_Allreduce(d, all, 6, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
	for (int i = 0; i < 3; i++)
		wrong += all[i] != all[i + 3];
	for (int i = 0; i < got; i++)
		wrong += owner(mine[i], size) != rank || (i > 0 && mine[i - 1] > mine[i]);
	MPI_Allreduce(&wrong, &all_wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	return all_wrong == 0;
}

int main(int argc, char **argv) {
	int rank, size, got = 0;
	int log2 = argc > 1 ? atoi(argv[1]) : 22, times = argc > 2 ? atoi(argv[2]) : 10;
	uint64_t first;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	int n = (int)share((uint64_t)1 << log2, rank, size, &first);
	uint32_t *keys = array(n, sizeof *keys), *mine = NULL;
	/* The mean of four numbers: more keys in the middle, so that ranks get different
	 * numbers of them. */
	for (int i = 0; i < n; i++) {
		uint64_t r = random_at(first + i);
		keys[i] = (uint32_t)(((r & 0xffff) + (r >> 16 & 0xffff) + (r >> 32 & 0xffff) + (r >> 48)) << (KEY_BITS - 16) >> 2);
	}

	MPI_Barrier(MPI_COMM_WORLD);
	double start = MPI_Wtime();
	for (int i = 0; i < times; i++) {
		free(mine);
		mine = sort(keys, n, size, &got);
	}
	double took = MPI_Wtime() - start, longest;
	MPI_Reduce(&took, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);

	int good = verify(keys, n, mine, got, rank, size);
	if (rank == 0)
		printf("is 2^%d keys, %d times on %d ranks: %.3f s, %s\n", log2, times, size, longest, good ? "verified" : "WRONG");
	MPI_Finalize();
	return !good;
}
