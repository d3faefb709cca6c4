# Modes, owners, times and attributes of a worker's own files, by all calls that there are, as
# they are without walls.
import ctypes, mmap, os, signal, stat, subprocess, tempfile, threading


def check(what, got, want):
    if got != want:
        print(f"{what}: {got}, want {want}")


def mode(path):
    return stat.S_IMODE(os.lstat(path).st_mode)


os.makedirs("dir/below")
open("dir/file", "w").close()
os.symlink("file", "dir/link")
os.chmod("dir/file", 0o640)
check("chmod", mode("dir/file"), 0o640)
os.chmod("dir/link", 0o604)
check("chmod by a link", mode("dir/file"), 0o604)
os.chmod(os.path.abspath("dir/file"), 0o755)
check("chmod by the whole path", mode("dir/file"), 0o755)
fd, d = os.open("dir/file", os.O_RDWR), os.open("dir", os.O_RDONLY)
os.fchmod(fd, 0o600)
check("fchmod", mode("dir/file"), 0o600)
os.chmod("file", 0o4711, dir_fd=d)
check("fchmodat", mode("dir/file"), 0o4711)
os.chmod(f"/proc/self/fd/{fd}", 0o644)
check("chmod by a descriptor's path", mode("dir/file"), 0o644)
os.chdir("dir")
os.chmod("../dir/./file", 0o700)
check("chmod from another directory", mode("file"), 0o700)
os.chmod(".", 0o750)
check("chmod of a directory", mode("."), 0o750)
os.utime("file", (1, 2.5))
check("utime", (os.stat("file").st_atime, os.stat("file").st_mtime), (1, 2.5))
os.utime(fd, (3, 4))
check("futimens", (os.stat("file").st_atime, os.stat("file").st_mtime), (3, 4))
os.utime("link", (5, 6), follow_symlinks=False)
check("times of a link", (os.lstat("link").st_mtime, os.stat("file").st_mtime), (6, 4))
os.utime("file")
check("now", os.stat("file").st_mtime > 10**9, True)
os.chown("file", os.getuid(), -1)
os.chown("link", -1, os.getgid(), follow_symlinks=False)
os.fchown(fd, -1, os.getgid())
for path in "file", fd:
    try:
        os.setxattr(path, "user.a", b"text")
        check("getxattr", os.getxattr("file", "user.a"), b"text")
        os.removexattr(path, "user.a")
        check("removexattr", os.listxattr("file"), [])
    except OSError as e:
        if e.errno != 95: # its file system has none
            raise
for what, want, f in [
    ("of nothing", 2, lambda: os.chmod("none", 0o644)), ("through a file", 20, lambda: os.chmod("file/x", 0o644)), ("without a name", 2, lambda: os.chmod("", 0o644)),
    ("of no descriptor", 9, lambda: os.fchmod(99, 0o644)), ("a name that is too long", 36, lambda: os.chmod("x" * 5000, 0o644)), ("of the machine", (1, 30), lambda: os.chmod("/etc/passwd", 0o666)),
    ("of a link alone", 95, lambda: os.chmod("link", 0o644, follow_symlinks=False)),
]:
    try:
        f()
        print(f"chmod {what}: done")
    except OSError as e:
        if e.errno not in (want if isinstance(want, tuple) else (want,)):
            check("chmod " + what, e.errno, want)
    except NotImplementedError:
        pass
# A path that ends with the last byte of memory, and one that has no end.
libc, size = ctypes.CDLL(None, use_errno=True), mmap.PAGESIZE
pages = mmap.mmap(-1, 2 * size)
begin = ctypes.addressof(ctypes.c_char.from_buffer(pages))
libc.munmap(ctypes.c_void_p(begin + size), ctypes.c_size_t(size))
for text, want in (b"file\0", (0, 0)), (b"file", (-1, 14)):
    at = begin + size - len(text)
    ctypes.memmove(at, text, len(text))
    ctypes.set_errno(0)
    check(f"chmod of {text} at the end of memory", (libc.chmod(ctypes.c_void_p(at), 0o700), ctypes.get_errno()), want)
# Processes that are killed while they wait, and many threads at a time.
for i in range(20):
    pid = os.fork()
    if pid == 0:
        while True:
            os.chmod("file", 0o700)
    os.chmod("file", 0o700)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
def change(n):
    open(f"own-{n}", "w").close()
    for i in range(200):
        os.chmod(f"own-{n}", 0o600 + i % 8)
    check(f"chmod by thread {n}", mode(f"own-{n}"), 0o607)
threads = [threading.Thread(target=change, args=(n,)) for n in range(8)]
for t in threads:
    t.start()
for t in threads:
    t.join()
# A signal does not have a change made twice: each of these would fail then.
signal.signal(signal.SIGALRM, lambda *_: None)
signal.siginterrupt(signal.SIGALRM, False)
signal.setitimer(signal.ITIMER_REAL, 1e-4, 1e-4)
try:
    for _ in range(3000):
        os.setxattr("file", "user.once", b"text", os.XATTR_CREATE)
        os.removexattr("file", "user.once")
except OSError as e:
    if e.errno != 95:
        print("under signals:", e)
signal.setitimer(signal.ITIMER_REAL, 0)
with tempfile.TemporaryFile() as t:
    os.fchmod(t.fileno(), 0o600)
r, w = os.pipe()
os.fchmod(r, 0o600)
os.fchmod(os.memfd_create("m"), 0o600)
subprocess.run("tar c file | (mkdir there; cd there; tar xp) && cp -a file copy && install -m 755 file installed && touch -d 2001-01-01 copy && chmod -R go-w .", shell=True, check=True)
check("tar", mode("there/file"), 0o700)
check("install", mode("installed"), 0o755)
print("all tried")
