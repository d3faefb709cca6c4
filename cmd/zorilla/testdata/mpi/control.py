# control.py FILE: what a program loses on this machine that computes for 2 ms and sleeps for
# 18 ms, again and again, because others have the processors: a line each time with the time and
# what it has lost since it began, in milliseconds. Ends when its parent does.
import os, sys, time

parent = os.getppid()
lost = 0.0
with open(sys.argv[1], "w", buffering=1) as out:
    while os.getppid() == parent:
        begun, cpu = time.monotonic(), time.process_time()
        while time.process_time() - cpu < 0.002:
            pass
        time.sleep(0.018)
        lost += time.monotonic() - begun - 0.020
        print(time.time_ns() // 1_000_000, round(1000 * lost), file=out)
