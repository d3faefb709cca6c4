/*
 * An evolutionary program of islands, after figure 5 of the QosCosGrid paper: each rank is one
 * individual of an island, which looks for the lowest point of Rastrigin's function. In each
 * iteration it has a child with a better one of two others of its island, evaluates it, and all of
 * the island tell each other (MPI_Iallgather, MPI_Iallreduce). After every ten iterations the best of
 * each island goes to the next one.
 *
 * Computed: children, Rastrigin's function of 16 variables, and all that is sent. Waited: 20 ms for
 * each evaluation, which stand for one that takes as long: so many ranks can share a processor.
 * A rank that waits for others sleeps too, and looks every 0.2 ms (patient.h).
 *
 * An island is the smallest link of a zorilla job that a rank is in, else its group (topology.h).
 * Without groups ISLANDS says how many there are. On processors that are alike the result depends
 * on the islands, not on where they run.
 *
 *     islands [ITERATIONS [MICROSECONDS [ISLANDS]]]      default 300 20000 1
 */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "patient.h"
#include "random.h"
#include "topology.h"

enum { GENES = 16, MIGRATION = 10 };

struct individual {
	double value, genes[GENES]; /* the lower, the better */
};
enum { LENGTH = 1 + GENES }; /* doubles of an individual */

static double evaluate(const double *genes) {
	double sum = 10 * GENES;

	for (int i = 0; i < GENES; i++)
		sum += genes[i] * genes[i] - 10 * cos(2 * M_PI * genes[i]);
	return sum;
}

/* The next random number of a rank. */
static double draw(uint64_t *n) { return uniform_at((*n)++); }

/* A child of an individual and the better one of two of its island. */
static struct individual child(const struct individual *own, const struct individual *all, int size, uint64_t *n) {
	const struct individual *a = &all[(int)(draw(n) * size)], *b = &all[(int)(draw(n) * size)];
	struct individual c;

	if (b->value < a->value)
		a = b;
	for (int i = 0; i < GENES; i++) {
		c.genes[i] = draw(n) < 0.5 ? own->genes[i] : a->genes[i];
		if (draw(n) < 1.0 / GENES)
			c.genes[i] += pow(draw(n) - 0.5, 3) * 8;
	}
	c.value = evaluate(c.genes);
	return c;
}

/* All of the island tell each other; returns its best. */
static struct individual tell(struct individual *own, struct individual *all, int size, MPI_Comm island) {
	MPI_Request requests[2];
	MPI_Status statuses[2];
	double least;

	MPI_Iallgather(own, LENGTH, MPI_DOUBLE, all, LENGTH, MPI_DOUBLE, island, &requests[0]);
	MPI_Iallreduce(&own->value, &least, 1, MPI_DOUBLE, MPI_MIN, island, &requests[1]);
	await_all(2, requests, statuses);
	for (int i = 0; i < size; i++)
		if (all[i].value == least)
			return all[i];
	fprintf(stderr, "the least value of an island is that of nobody\n");
	MPI_Abort(MPI_COMM_WORLD, 1);
	return *own;
}

/* The first rank of an island gives its best to the next island, and takes that of the one before
 * if it is better than itself. */
static void migrate(struct individual *own, const struct individual *best, MPI_Comm leaders) {
	MPI_Request requests[2];
	MPI_Status statuses[2];
	struct individual comes;
	int me, count;

	MPI_Comm_rank(leaders, &me);
	MPI_Comm_size(leaders, &count);
	if (count == 1)
		return;
	MPI_Irecv(&comes, LENGTH, MPI_DOUBLE, (me + count - 1) % count, 0, leaders, &requests[0]);
	MPI_Isend(best, LENGTH, MPI_DOUBLE, (me + 1) % count, 0, leaders, &requests[1]);
	await_all(2, requests, statuses);
	if (comes.value < own->value)
		*own = comes;
}

int main(int argc, char **argv) {
	int iterations = argc > 1 ? atoi(argv[1]) : 300, count = argc > 3 ? atoi(argv[3]) : 1;
	double wait = argc > 2 ? atof(argv[2]) : 20000;
	int rank, size, me, members, first, wrong = 0, all_wrong;
	struct topology t;
	MPI_Comm island, leaders;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (topology_make(&t) || count < 1 || count > size)
		MPI_Abort(MPI_COMM_WORLD, 2);
	if (*t.group)
		MPI_Comm_dup(topology_smallest(&t), &island);
	else
		MPI_Comm_split(MPI_COMM_WORLD, (int)((long)rank * count / size), rank, &island);
	MPI_Comm_rank(island, &me);
	MPI_Comm_size(island, &members);
	MPI_Comm_split(MPI_COMM_WORLD, me == 0 ? 0 : MPI_UNDEFINED, rank, &leaders);
	first = me == 0;
	MPI_Allreduce(&first, &count, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);

	uint64_t n = (uint64_t)rank << 32;
	struct individual own, best, *all = malloc(members * sizeof *all);
	for (int i = 0; i < GENES; i++)
		own.genes[i] = 10.24 * draw(&n) - 5.12;
	own.value = evaluate(own.genes);
	best = tell(&own, all, members, island); /* MPI connects ranks when they first talk: that does not count */
	MPI_Barrier(MPI_COMM_WORLD);
	double start = MPI_Wtime(), before;

	for (int i = 1; i <= iterations; i++) {
		struct individual c = child(&own, all, members, &n);
		rest(wait);
		if (c.value < own.value)
			own = c;
		before = best.value;
		best = tell(&own, all, members, island);
		wrong += best.value > before || fabs(best.value - evaluate(best.genes)) > 1e-9;
		if (i % MIGRATION == 0 && leaders != MPI_COMM_NULL)
			migrate(&own, &best, leaders);
	}
	double took = MPI_Wtime() - start, longest, lowest;
	MPI_Allreduce(&took, &longest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	MPI_Allreduce(&best.value, &lowest, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
	MPI_Allreduce(&wrong, &all_wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (rank == 0)
		printf("islands: %d, %d iterations, best %.9f on %d ranks: %.3f s, %s\n", count, iterations, lowest, size, longest,
		       all_wrong ? "WRONG" : "verified");
	free(all);
	MPI_Comm_free(&island);
	if (leaders != MPI_COMM_NULL)
		MPI_Comm_free(&leaders);
	topology_free(&t);
	MPI_Finalize();
	return all_wrong != 0;
}
