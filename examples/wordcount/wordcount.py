#!/usr/bin/env python3
"""Counts words as MapReduce does, in two jobs.

    wordcount.py map FILE    counts the words of a file: map-TASK-PART for each of 16 parts
    wordcount.py reduce      adds up this rank's parts of what is in counted: counts-RANK
"""
import collections
import glob
import os
import re
import sys
import zlib

PARTS = 16


def count(path):
    task = os.environ.get("ZORILLA_TASK_ID", "0")
    counts = collections.Counter(re.findall(r"[a-z]+", open(path).read().lower()))
    parts = [open(f"map-{task}-{part}", "w") for part in range(PARTS)]
    for word, n in counts.items():
        print(n, word, file=parts[zlib.crc32(word.encode()) % PARTS])


def add():
    rank = int(os.environ.get("ZORILLA_RANK", 0))
    size = int(os.environ.get("ZORILLA_SIZE", 1))
    counts = collections.Counter()
    for part in range(rank, PARTS, size):
        for path in glob.glob(f"counted/map-*-{part}"):
            for line in open(path):
                n, word = line.split()
                counts[word] += int(n)
    with open(f"counts-{rank}", "w") as f:
        for word, n in counts.items():
            print(n, word, file=f)


if sys.argv[1] == "map":
    count(sys.argv[2])
else:
    add()
