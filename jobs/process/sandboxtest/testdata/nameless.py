"""Fills its disk with a file that has no name any more, in the way that it is told to."""
import ctypes, json, mmap, os, signal, sys, threading

how = sys.argv[1]
libc = ctypes.CDLL(None, use_errno=True)
calls = json.loads(os.environ["CALLS"])
CLONE_FILES, CLONE_NEWUSER, PR_SET_DUMPABLE = 0x400, 0x10000000, 4


def fill(fd):
    for _ in range(12):
        os.write(fd, b"x" * (1 << 20))
        os.fsync(fd)


def make(name="file"):
    fd = os.open(name, os.O_RDWR | os.O_CREAT, 0o600)
    os.unlink(name)
    return fd


def work():
    if how == "untraceable":
        libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
        fill(make())
    elif how == "temporary":
        fill(os.open(".", os.O_RDWR | os.O_TMPFILE, 0o600))
    elif how == "deep":
        for _ in range(30):
            os.mkdir("d" * 200)
            os.chdir("d" * 200)
        fill(make())
    elif how == "directory":
        os.mkdir("sub")
        fd = make("sub/file")
        os.rmdir("sub")
        fill(fd)
    elif how == "child":
        fd = make()
        if os.fork() == 0:
            os.setsid()
            libc.unshare(CLONE_NEWUSER)
            fill(fd)
            signal.pause()
        os.close(fd)
    elif how == "thread":
        assert libc.unshare(CLONE_FILES) == 0
        fill(make())
    elif how == "first":  # the first thread of the process ends
        fill(make())
    elif how == "mapped":
        fd = make()
        fill(fd)
        mapped.append(mmap.mmap(fd, 4096))
        os.close(fd)  # mmap has a descriptor of its own
        os.closerange(3, 100)
    elif how == "program":  # that the worker may run, and not read
        fd = make()
        os.set_inheritable(fd, True)
        fill(fd)
        with open("/usr/bin/sleep", "rb") as f, open("sleep", "wb") as g:
            g.write(f.read())
        os.chmod("sleep", 0o111)
        os.execv("./sleep", ["sleep", "3600"])
    else:
        fill(make())


mapped = []
if how in ("thread", "first"):
    t = threading.Thread(target=lambda: (work(), signal.pause()))
    t.start()
    if how == "first":
        libc.syscall(calls["exit"], 0)
    t.join()
work()
print("full", flush=True)
signal.pause()
