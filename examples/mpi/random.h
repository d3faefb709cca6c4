/* The n-th random number, without those before it: so a rank can make its part of a
 * sequence, and the whole is the same for any number of ranks. (splitmix64) */
#include <stdint.h>

static inline uint64_t random_at(uint64_t n) {
	uint64_t z = (n + 1) * 0x9e3779b97f4a7c15u;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/* A number of [0, 1). */
static inline double uniform_at(uint64_t n) { return (double)(random_at(n) >> 11) * 0x1p-53; }

/* Rank's share of n things: from first, count of them. */
static inline uint64_t share(uint64_t n, int rank, int size, uint64_t *first) {
	*first = n / size * rank + (n % size < (uint64_t)rank ? n % size : (uint64_t)rank);
	return n / size + (n % size > (uint64_t)rank);
}
