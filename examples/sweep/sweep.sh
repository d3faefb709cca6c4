#!/bin/sh
# A parameter sweep: 200 values of r in the logistic map x -> r x (1 - x). Each
# rank takes every SIZEth value and writes "r period" lines to sweep-RANK.txt;
# period 0 means that none up to 64 was found: chaos.
#
#   zorilla run -n 4 -o 'sweep-*' -- ./sweep.sh
#   sort -n sweep-* > sweep.txt
set -eu
rank=${ZORILLA_RANK:-0}
size=${ZORILLA_SIZE:-1}

LC_ALL=C awk -v rank="$rank" -v size="$size" '
function period(r,    x, i, start, d) {
	x = 0.5
	for (i = 0; i < 20000; i++) x = r * x * (1 - x)
	start = x
	for (i = 1; i <= 64; i++) {
		x = r * x * (1 - x)
		d = x - start
		if (d < 0.000001 && d > -0.000001) return i
	}
	return 0
}
BEGIN {
	for (k = rank; k < 200; k += size) {
		r = 3 + k / 200
		printf "%.3f %d\n", r, period(r)
	}
}' > "sweep-$rank.txt"
echo "rank $rank of $size: $(wc -l < "sweep-$rank.txt" | tr -d ' ') values"
