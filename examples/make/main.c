#include <stdio.h>

#include "stats.h"

/* Says the mean and the median of the numbers on its standard input. */
int main(void)
{
	static double x[100000];
	int n = 0;
	while (n < 100000 && scanf("%lf", &x[n]) == 1)
		n++;
	if (n == 0)
		return 1;
	printf("mean %g\n", mean(x, n));
	printf("median %g\n", median(x, n));
	return 0;
}
