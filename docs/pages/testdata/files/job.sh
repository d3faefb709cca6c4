#!/bin/sh
#ZORILLA -n 2 -o 'made-*'
date >"made-${ZORILLA_RANK:-0}"
