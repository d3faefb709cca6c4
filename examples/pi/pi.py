#!/usr/bin/env python3
"""Estimates pi by throwing darts: a job of as many ranks as there is room for.

    pi.py THROWS        one rank's darts, into pi-RANK
    pi.py -sum pi-*     what all of them come to
"""
import math
import os
import random
import sys


def throw(throws):
    rank = int(os.environ.get("ZORILLA_RANK", 0))
    darts = random.Random(rank)  # a rank that is lost is run again, with the same darts
    hits = sum(math.hypot(darts.random(), darts.random()) < 1 for _ in range(throws))
    with open(f"pi-{rank}", "w") as f:
        print(hits, throws, file=f)


def add(files):
    counts = [map(int, open(name).read().split()) for name in files]
    hits, throws = map(sum, zip(*counts))
    p = hits / throws
    error = 4 * math.sqrt(p * (1 - p) / throws)
    print(f"pi = {4 * p:.4f} +- {error:.4f}, by {throws} throws of {len(files)} ranks")


if sys.argv[1] == "-sum":
    add(sys.argv[2:])
else:
    throw(int(sys.argv[1]))
