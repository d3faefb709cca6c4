# A worker that leaves behind whatever it can: processes named by the first argument,
# objects of the kernel, files that are hard to remove.
import ctypes, json, os, signal, socket, sys

libc = ctypes.CDLL(None, use_errno=True)
numbers = json.loads(os.environ["CALLS"])
NEWNS, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET = 0x20000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000


def call(name, *args):
    return libc.syscall(ctypes.c_long(numbers[name]), *args)


def sleeper(kind):
    os.execve("/bin/sleep", [sys.argv[1] + kind, "3600"], {})


def double():
    os.setsid()
    if os.fork() == 0:
        os.setsid()
        sleeper("double")
    os._exit(0)


def spaces():
    call("unshare", NEWUSER | NEWUTS | NEWIPC | NEWNS | NEWPID | NEWNET)
    os.setsid()
    if os.fork() == 0:
        if os.fork() == 0:
            sleeper("below")
        sleeper("first")
    sleeper("spaces")


def reaper():
    libc.prctl(36, 1, 0, 0, 0)
    os.setsid()
    if os.fork() == 0:
        if os.fork() == 0:
            sleeper("orphan")
        os._exit(0)
    sleeper("reaper")


def stopped():
    if os.fork() == 0:
        os.kill(os.getpid(), signal.SIGSTOP)
    sleeper("stopped")


def traced():
    libc.prctl(1, 0, 0, 0, 0)
    if os.fork() == 0:
        call("ptrace", 0, 0, 0, 0)
        sleeper("traced")
    os.setsid()
    sleeper("tracer")


def deaf():
    for s in range(1, 65):
        try:
            signal.signal(s, signal.SIG_IGN)
        except (OSError, ValueError):
            pass
    libc.prctl(4, 0, 0, 0, 0) # not to be looked into
    os.setsid()
    os.execve("/bin/sleep", [sys.argv[1] + "deaf", "3600"], {})


for kind in (double, spaces, reaper, stopped, traced, deaf):
    if os.fork() == 0:
        kind()

# Objects that live until they are removed.
attr = (ctypes.c_long * 8)(0, 8, 64)
call("mq_open", b"sandboxtest", os.O_CREAT | os.O_RDWR, 0o666, attr)
for _ in range(8):
    call("shmget", 0, 1 << 20, 0o1666)
    call("semget", 0, 4, 0o1666)
    call("msgget", 0, 0o1666)

# Files.
os.mkfifo("fifo")
try:
    socket.socket(socket.AF_UNIX).bind("socket")
except OSError:
    pass # without namespaces
for name in ("-rf", "a\nb", "\x1b[2J", " ", "*", b"\xff\xfe", "x" * 255):
    open(name, "w").close()
os.symlink("/", "up")
os.symlink("loop", "loop")
os.link("fifo", "again")
os.setxattr("-rf", "user.x", b"y" * 1000)
top = os.open(".", os.O_RDONLY)
for _ in range(100): # longer than any path
    os.mkdir("d" * 100)
    os.chdir("d" * 100)
os.fchdir(top)
for way in ("shut/a/b", "shut/c"):
    os.makedirs(way)
for way in ("shut/a/b", "shut/a", "shut/c", "shut"):
    os.chmod(way, 0)
os.chmod(".", 0)
if os.environ.get("TMPDIR"):
    os.makedirs(os.environ["TMPDIR"] + "/x/y")
    os.chmod(os.environ["TMPDIR"] + "/x", 0)
for mine in (os.environ["TMPDIR"], os.getcwd()): # they are the node's
    for f in (lambda: os.rename(mine, mine + ".away"), lambda: os.rmdir(mine), lambda: os.symlink("/etc", mine + "/../mine")):
        try:
            f()
        except OSError:
            pass
for fd in range(3):
    if sys.argv[2] == "close":
        os.close(fd)
os.write(1, b"left\n") if sys.argv[2] != "close" else os._exit(7)
if sys.argv[2] == "wait":
    signal.pause()
