#!/usr/bin/env python3
"""Submits one job of Snakemake to Zorilla, and prints its ID.

    submit.py JOBSCRIPT

threads, and resources mem_mb, disk_mb, runtime (minutes) and gpus, of a rule are what its worker gets. The job runs
in the directory of the workflow, which nodes must show to workers to be written:

    zorilla owner set expose+=/shared/work:rw       (or: zorilla node --expose /shared/work:rw)

ZORILLA_SNAKEMAKE has more options of zorilla submit, such as "--mount /data:ro --where 'site == \"delft\"'".
"""
import json
import os
import shlex
import sys

# What runs on the node before the job does. A directory of that path which is not the workflow's lacks the job's
# script, whose name nobody else has; another machine may need a moment to see it.
CHECK = r"""
fail() { echo "snakemake on $(uname -n): $1" >&2; exit 1; }
if [ -d "$1/.snakemake" ] && ! [ -w "$1/.snakemake" ]; then
	fail "$1 cannot be written by user $(id -u): nodes must run workers as the user who owns it, see zorilla node --run-as"
fi
tries=0
until [ -r "$2" ]; do
	tries=$((tries + 1))
	[ $tries -le $3 ] || fail "$1 is not the directory of this workflow here: nodes that show it must share it"
	sleep 1
done
cd "$1" && exec "$2"
"""


def options(job, directory):
    """The options of zorilla submit for a job."""
    resources = job.get("resources", {})
    name = job.get("rule") or job.get("groupid") or "group"
    yield from ["-J", f"{name}-{job['jobid']}", "-c", str(job.get("threads", 1)), "--mount", directory + ":rw"]
    for name, option, unit in (("mem_mb", "--mem", "M"), ("disk_mb", "--disk", "M"), ("runtime", "-t", "m"), ("gpus", "--gpus", "")):
        value = resources.get(name)
        if isinstance(value, (int, float)) and value > 0:
            yield from [option, f"{int(value)}{unit}"]
    yield from shlex.split(os.environ.get("ZORILLA_SNAKEMAKE", ""))


def main(script):
    with open(script) as f:
        job = next(json.loads(line.partition("=")[2]) for line in f if line.startswith("# properties ="))
    directory = os.getcwd()
    command = ["zorilla", "submit", "--parsable", *options(job, directory), "--", "sh", "-c", CHECK, "sh", directory, script, "10"]
    try:
        os.execvp(command[0], command)
    except OSError as e:
        sys.exit(f"zorilla: {e.strerror}: is it installed, and in the PATH?")


if __name__ == "__main__":
    main(sys.argv[1])
