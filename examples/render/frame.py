#!/usr/bin/python3
"""Draws one frame of a flight into the Mandelbrot set, with numpy: the task says which.

A frame is what it is in a file of YUV4MPEG2, so that a film is a line of text and all frames.
"""
import os

import numpy as np

WIDTH, HEIGHT, STEPS = 320, 240, 80
CENTRE = -0.743643 + 0.131825j

task = int(os.environ.get("ZORILLA_TASK_ID", 1))
zoom = 1.5 * 0.85**task
x = np.linspace(-zoom, zoom, WIDTH)
y = np.linspace(-zoom, zoom, HEIGHT)[:, None] * HEIGHT / WIDTH
c = CENTRE + x + 1j * y

z = np.zeros_like(c)
steps = np.zeros(c.shape, int)
for _ in range(STEPS):
    inside = abs(z) < 2
    z[inside] = z[inside] ** 2 + c[inside]
    steps += inside

with open(f"frame-{task:03}", "wb") as f:
    f.write(b"FRAME\n")
    f.write((255 - steps * 239 // STEPS).astype(np.uint8).tobytes())
