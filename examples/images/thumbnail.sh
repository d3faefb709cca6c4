#!/bin/sh
# Makes NAME.jpg of a picture .../NAME.ppm, not larger than 160 by 120.
set -eu
pamscale -xyfit 160 120 "$1" | pnmtojpeg >"$(basename "$1" .ppm).jpg"
