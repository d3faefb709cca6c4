#!/usr/bin/env python3
"""Runs a share of the tests in a directory: every SIZEth one, beginning with RANK.

The exit code of the job is not 0 if a test fails in any of its ranks.
"""
import os
import sys
import unittest


def each(suite):
    for test in suite:
        yield from each(test) if isinstance(test, unittest.TestSuite) else [test]


rank = int(os.environ.get("ZORILLA_RANK", 0))
size = int(os.environ.get("ZORILLA_SIZE", 1))
every = sorted(each(unittest.defaultTestLoader.discover(sys.argv[1])), key=str)
result = unittest.TextTestRunner(sys.stdout).run(unittest.TestSuite(every[rank::size]))
sys.exit(not result.wasSuccessful())
