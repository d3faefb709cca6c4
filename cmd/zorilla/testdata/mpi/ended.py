# ended.py NAME SINCE LIMIT CONTROL: waits until no process of that name runs, and prints how many
# milliseconds after a time that was, and how many of them a program lost meanwhile to others that
# had the processors, by the file of control.py; fails after the limit. Asking again and again
# would take longer than what is measured, so the kernel reports each end (pidfd).
import os, select, sys, time

name, since, limit, control = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]


def lost(at):
    """What control.py had lost until then; what it loses now is in its next line."""
    while True:
        with open(control) as f:
            lines = [line.split() for line in f if line.endswith("\n")]
        if lines and int(lines[-1][0]) >= at:
            return next(int(had) for time, had in lines if int(time) >= at)
        time.sleep(0.01)


def now():
    return time.time_ns() // 1_000_000


def running():
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as f:
                comm, state = f.read().split("(", 1)[1].rsplit(") ", 1)
            if comm == name and state[0] not in "ZX":
                yield os.pidfd_open(int(pid))
        except OSError:  # it has ended
            pass


ended = now()
while ranks := list(running()):
    poll = select.poll()
    for fd in ranks:
        poll.register(fd, select.POLLIN)
    while ranks:
        left = since + limit - now()
        if left <= 0:
            sys.exit(1)
        for fd, _ in poll.poll(left):
            ended = now()
            poll.unregister(fd)
            os.close(fd)
            ranks.remove(fd)
print(ended - since, lost(ended) - lost(since))
