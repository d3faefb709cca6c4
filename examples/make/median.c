#include <stdlib.h>

#include "stats.h"

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* median sorts x. */
double median(double *x, int n)
{
	qsort(x, n, sizeof *x, compare);
	return (x[(n - 1) / 2] + x[n / 2]) / 2;
}
