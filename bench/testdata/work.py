# Computes for some seconds, and every so often has a state kept: python3 work.py SECONDS EVERY MIB NEW
# NEW of MIB mebibytes are new each time. It prints how long it took.
import hashlib, os, subprocess, sys, time

steps, every, size, new = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
os.makedirs("state", exist_ok=True)
block = os.urandom(1 << 20)
with open("state/data", "wb") as f:
    for i in range(size):
        f.write(i.to_bytes(8, "big") + block[8:])
work, begun, next_, count, kept = bytes(1 << 16), time.time(), time.time() + every, 0, 0.0
for i in range(steps):
    hashlib.sha256(work).digest()
    if every > 0 and time.time() >= next_:
        count, before, next_ = count + 1, time.time(), time.time() + every
        with open("state/data", "r+b") as f:
            for k in range(new):
                f.seek(((count * new + k) % size) << 20)
                f.write(os.urandom(16) + block[16:])
        subprocess.run(["zorilla", "checkpoint"] + sys.argv[5:] + ["state"], check=True, stdout=subprocess.DEVNULL)
        kept += time.time() - before
took = time.time() - begun
print("took %.2f s, of which %d checkpoints %.2f s" % (took, count, kept))
