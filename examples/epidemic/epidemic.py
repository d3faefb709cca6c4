#!/usr/bin/python3
"""How often does an infection break out, and how many catch it? A sweep over R0 with numpy.

Each task has one value of R0 and runs 1000 epidemics of the Reed-Frost model side by side:
whoever is infected today meets everybody else once and is immune tomorrow.
"""
import os

import numpy as np

PEOPLE, EPIDEMICS = 500, 1000

task = int(os.environ.get("ZORILLA_TASK_ID", 10))
r0 = task / 10
random = np.random.default_rng(task)

infected = np.ones(EPIDEMICS, int)
susceptible = np.full(EPIDEMICS, PEOPLE - 1)
while infected.any():
    catches = 1 - (1 - r0 / PEOPLE) ** infected
    infected = random.binomial(susceptible, catches)
    susceptible -= infected

caught = PEOPLE - susceptible
broken_out = caught > PEOPLE / 10
mean = caught[broken_out].mean() / PEOPLE if broken_out.any() else 0
with open(f"epidemic-{task:02}.csv", "w") as f:
    print(f"{r0:.1f},{broken_out.mean():.3f},{mean:.3f}", file=f)
