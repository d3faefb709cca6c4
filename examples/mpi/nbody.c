/*
 * Steps of an N-body simulation with a mesh, after figure 6 of the QosCosGrid paper. The ranks have
 * slabs of a periodic box. In a step they count the particles of each cell of the mesh, exchange the
 * mesh so that each rank has whole lines of it (all with all), find the pull along each line, send
 * that back (all with all), move the particles, and give those that leave a slab to its neighbours.
 *
 * Computed: the mesh, and all that is sent. The pull is that of sheets, and along one axis only: more
 * masses on the right than on the left pull to the right. Positions and velocities are whole numbers,
 * so that the result is the same on any number of ranks, momentum is kept exactly, and both can be
 * checked. Waited: 10 us for each particle of a rank and step, which stand for what a real code
 * computes of near particles: so many ranks can share a processor. MICROSECONDS differs where groups
 * have processors of different clocks. A rank that waits for others sleeps too, and looks every 0.2 ms
 * (patient.h).
 *
 * The paper has 256^3 particles and a mesh of 128^3; here there is an eighth of both by default, so that
 * distance weighs eight times as much. MESH must be a power of two, and a multiple of the number of ranks.
 *
 *     nbody [STEPS [MICROSECONDS [PARTICLES [MESH]]]]      default 5 10 128 64, the last two along each axis
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "patient.h"
#include "random.h"

struct particle {
	uint32_t x;    /* the box is 2^32 long, so that it closes by itself */
	int32_t v;     /* way in a step */
	uint32_t line; /* of the mesh */
};

enum { KICK = 256 }; /* what a mass more on one side adds to v */

static int rank, size;
static int mesh, planes, lines; /* cells along an axis; the rank's planes; the lines of which it finds the pull */
static uint32_t width;          /* of a plane */
static uint64_t slab;           /* of a rank's planes: 2^32 if there is one rank */
static struct particle *own;
static long count, room; /* of own */

static void fail(const char *why) {
	fprintf(stderr, "rank %d: %s\n", rank, why);
	MPI_Abort(MPI_COMM_WORLD, 2);
}

static void *memory(size_t bytes) {
	void *p = malloc(bytes);

	if (!p)
		fail("no memory");
	return p;
}

/* Makes the particles of the rank's planes, each plane the same whose it may be. */
static void make(long across) {
	long of_plane = across * across * across / mesh;
	uint64_t n;

	room = 2 * planes * of_plane + 1024;
	own = memory(room * sizeof *own);
	for (long plane = (long)rank * planes; plane < (long)(rank + 1) * planes; plane++)
		for (long i = 0; i < of_plane; i++) {
			n = ((uint64_t)plane << 32) + 3 * i;
			own[count].x = (uint32_t)plane * width + (uint32_t)(uniform_at(n) * width);
			own[count].line = (uint32_t)(uniform_at(n + 1) * mesh * mesh);
			own[count++].v = (int32_t)((uniform_at(n + 2) - 0.5) * (width / 32));
		}
}

/* Sends a block of so many numbers to each rank, and takes one from each: all at once, so that a
 * distance is waited for once and not once for each rank. */
static void exchange(const int32_t *out, int32_t *in, int block) {
	MPI_Request *requests = memory(2 * size * sizeof *requests);
	MPI_Status *statuses = memory(2 * size * sizeof *statuses);

	for (int i = 0; i < size; i++) {
		int from = (rank + size - i) % size, to = (rank + i) % size;
		MPI_Irecv(in + (size_t)from * block, block, MPI_INT32_T, from, 1, MPI_COMM_WORLD, &requests[i]);
		MPI_Isend(out + (size_t)to * block, block, MPI_INT32_T, to, 1, MPI_COMM_WORLD, &requests[size + i]);
	}
	await_all(2 * size, requests, statuses);
	free(requests), free(statuses);
}

/* Where a number of the rank's planes lies among blocks of the ranks that have its line. */
static size_t place(int plane, uint32_t line) { return ((line / lines) * (size_t)planes + plane) * lines + line % lines; }

static int plane_of(const struct particle *p) { return (int)((p->x - (uint32_t)(rank * slab)) / width); }

/* Finds the pull on each cell of the rank's planes; pull and work have room for these. */
static void gravity(int32_t *pull, int32_t *work) {
	memset(work, 0, (size_t)planes * mesh * mesh * sizeof *work);
	for (long i = 0; i < count; i++)
		work[place(plane_of(&own[i]), own[i].line)]++;
	exchange(work, pull, planes * lines);
	for (int line = 0; line < lines; line++) {
		int32_t all = 0, left = 0;
		for (int x = 0; x < mesh; x++)
			all += pull[(size_t)x * lines + line];
		for (int x = 0; x < mesh; x++) {
			int32_t here = pull[(size_t)x * lines + line];
			pull[(size_t)x * lines + line] = all - here - 2 * left;
			left += here;
		}
	}
	exchange(pull, work, planes * lines);
}

/* Moves the particles, and puts those that leave behind the others, those to the left first. */
static void move(const int32_t *pull, long *stay, long *left) {
	long i = 0, end = count, last = count;

	for (long k = 0; k < count; k++) {
		struct particle *p = &own[k];
		p->v += KICK * pull[place(plane_of(p), p->line)];
		if ((uint64_t)llabs(p->v) >= slab)
			fail("a particle is too fast: want fewer steps or ranks");
		p->x += (uint32_t)p->v;
	}
	while (i < end) { /* those that stay, unseen ones, to the left, to the right */
		struct particle p = own[i];
		if (p.x / slab == (uint64_t)rank) {
			i++;
		} else if (p.v < 0) {
			own[i] = own[--end];
			own[end] = p;
		} else {
			own[i] = own[--end];
			own[end] = own[--last];
			own[last] = p;
		}
	}
	*stay = end, *left = last - end;
}

/* Gives those that have left the slab to the neighbours, and takes theirs. */
static void pass(long stay, long left, struct particle *gone) {
	MPI_Request requests[4];
	MPI_Status statuses[4];
	int before = (rank + size - 1) % size, after = (rank + 1) % size, bytes, each = sizeof *own;
	long right = count - stay - left, most = (room - stay) / 2;

	if (size == 1)
		return;
	memcpy(gone, own + stay, (left + right) * each);
	MPI_Irecv(own + stay, (int)(most * each), MPI_BYTE, after, 2, MPI_COMM_WORLD, &requests[0]);
	MPI_Irecv(own + stay + most, (int)(most * each), MPI_BYTE, before, 3, MPI_COMM_WORLD, &requests[1]);
	MPI_Isend(gone, (int)(left * each), MPI_BYTE, before, 2, MPI_COMM_WORLD, &requests[2]);
	MPI_Isend(gone + left, (int)(right * each), MPI_BYTE, after, 3, MPI_COMM_WORLD, &requests[3]);
	await_all(4, requests, statuses);
	MPI_Get_count(&statuses[0], MPI_BYTE, &bytes);
	count = stay + bytes / each;
	MPI_Get_count(&statuses[1], MPI_BYTE, &bytes);
	memmove(own + count, own + stay + most, bytes);
	count += bytes / each;
}

/* What all ranks have: particles, momentum, and a sum that tells any two results apart. */
static void total(int64_t sums[3]) {
	int64_t mine[3] = {count, 0, 0};

	for (long i = 0; i < count; i++) {
		uint64_t where = (uint64_t)own[i].line << 32 | own[i].x;
		mine[1] += own[i].v;
		mine[2] = (int64_t)((uint64_t)mine[2] + random_at(where ^ random_at((uint32_t)own[i].v)));
	}
	MPI_Allreduce(mine, sums, 3, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
	int steps = argc > 1 ? atoi(argv[1]) : 5;
	double wait = argc > 2 ? atof(argv[2]) : 10;
	long across = argc > 3 ? atol(argv[3]) : 128, stay, left;
	int64_t before[3], after[3];

	mesh = argc > 4 ? atoi(argv[4]) : 64;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (mesh < 2 || mesh > 1024 || (mesh & (mesh - 1)) || mesh % size || across < 1 || across > 1024)
		fail("want a mesh of 2, 4, 8, ... 1024, which the number of ranks divides, and 1 to 1024 particles along an axis");
	planes = mesh / size, lines = mesh * mesh / size;
	width = (uint32_t)((UINT64_C(1) << 32) / mesh), slab = (uint64_t)width * planes;
	make(across);
	int32_t *pull = memory((size_t)planes * mesh * mesh * sizeof *pull), *work = memory((size_t)planes * mesh * mesh * sizeof *work);
	struct particle *gone = memory(room * sizeof *gone);
	memset(work, 0, (size_t)planes * mesh * mesh * sizeof *work);
	exchange(work, pull, planes * lines); /* MPI connects ranks when they first talk: that does not count */
	total(before);
	double start = MPI_Wtime();

	for (int i = 0; i < steps; i++) {
		gravity(pull, work);
		rest(wait * (double)count);
		move(work, &stay, &left);
		pass(stay, left, gone);
	}
	double took = MPI_Wtime() - start, longest;
	MPI_Allreduce(&took, &longest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	total(after);
	int right = after[0] == before[0] && after[0] == across * across * across / mesh * mesh && after[1] == before[1];
	if (rank == 0)
		printf("nbody: %lld particles, %d steps, sum %016llx on %d ranks: %.3f s, %s\n", (long long)after[0], steps,
		       (unsigned long long)after[2], size, longest, right ? "verified" : "WRONG");
	free(own), free(pull), free(work), free(gone);
	MPI_Finalize();
	return !right;
}
