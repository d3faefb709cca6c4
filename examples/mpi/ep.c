/*
 * Embarrassingly parallel, in the style of the NAS benchmark EP: pairs of random
 * numbers become pairs of normal deviates (Marsaglia's polar method), which are counted
 * by the square ring that they are in. The ranks talk only at the end.
 *
 *     ep [LOG2 OF THE PAIRS]      default 24
 */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "random.h"

enum { RINGS = 10 };

/* How many pairs there are within the unit circle, and the sum of the deviates. */
static const struct {
	int log2;
	long long accepted;
	double sum;
} known[] = {
	{16, 51589, -131.225749327},      {20, 822959, 709.254921832},     {22, 3293214, 3477.142410020},
	{24, 13174666, 4850.612956478},   {26, 52703390, 423.697685599},   {28, 210829486, 5875.638489559},
};

int main(int argc, char **argv) {
	int rank, size, log2 = argc > 1 ? atoi(argv[1]) : 24;
	long long rings[RINGS + 1] = {0}, all[RINGS + 1];
	double sums[2] = {0, 0}, totals[2];
	uint64_t first;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Barrier(MPI_COMM_WORLD);
	double start = MPI_Wtime();

	uint64_t count = share((uint64_t)1 << log2, rank, size, &first);
	for (uint64_t i = first; i < first + count; i++) {
		double x = 2 * uniform_at(2 * i) - 1, y = 2 * uniform_at(2 * i + 1) - 1;
		double t = x * x + y * y;
		if (t > 1 || t == 0)
			continue;
		double f = sqrt(-2 * log(t) / t);
		x *= f;
		y *= f;
		int ring = (int)fmax(fabs(x), fabs(y));
		rings[ring < RINGS ? ring : RINGS - 1]++;
		rings[RINGS]++;
		sums[0] += x;
		sums[1] += y;
	}
	MPI_Reduce(rings, all, RINGS + 1, MPI_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
	MPI_Reduce(sums, totals, 2, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
	double took = MPI_Wtime() - start;

	int wrong = 0;
	if (rank == 0) {
		const char *how = "plausible";
		double n = ldexp(1, log2);
		/* Pairs are accepted with probability pi/4: five standard deviations. */
		wrong = fabs(all[RINGS] / n - M_PI / 4) > 5 * sqrt(M_PI / 4 * (1 - M_PI / 4) / n);
		for (unsigned i = 0; i < sizeof known / sizeof *known; i++) {
			if (known[i].log2 != log2)
				continue;
			how = "verified";
			wrong = all[RINGS] != known[i].accepted || fabs(totals[0] + totals[1] - known[i].sum) > 1e-9 * n;
		}
		for (int i = 0; i < RINGS; i++)
			printf("ring %d: %lld\n", i, all[i]);
		printf("accepted %lld, sum %.9f\n", all[RINGS], totals[0] + totals[1]);
		printf("ep 2^%d on %d ranks: %.3f s, %s\n", log2, size, took, wrong ? "WRONG" : how);
	}
	MPI_Bcast(&wrong, 1, MPI_INT, 0, MPI_COMM_WORLD);
	MPI_Finalize();
	return wrong;
}
