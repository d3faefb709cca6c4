# What a hostile worker tries. Each attack yields what it has won; nothing is what it
# should win. Those marked outside win when they are not confined, which shows that they
# are attacks. The facts come by the environment: CALLS, the numbers of system calls;
# VICTIM and NODE, process numbers; SOCKET, ABSTRACT and SECRET, paths outside.
import ctypes, fcntl, json, os, resource, signal, socket, stat, subprocess, sys, threading, time

libc = ctypes.CDLL(None, use_errno=True)
numbers = json.loads(os.environ["CALLS"])
victim, main = int(os.environ["VICTIM"]), os.getpid()
attacks = []

NEWNS, NEWUTS, NEWUSER, NEWPID, NEWNET = 0x20000, 0x4000000, 0x10000000, 0x20000000, 0x40000000


def attack(outside=False):
    def take(f):
        attacks.append((f.__name__, f, outside))
        return f
    return take


def call(name, *args):
    """The system call's result; OSError if it was refused."""
    args = [ctypes.c_long(a) if isinstance(a, int) else a for a in args]
    ctypes.set_errno(0)
    r = libc.syscall(ctypes.c_long(numbers[name]), *args)
    if r < 0:
        raise OSError(ctypes.get_errno(), name)
    return r


def works(f, *args, **kw):
    """Whether f raises no OSError."""
    try:
        f(*args, **kw)
        return True
    except (OSError, ValueError):
        return False


def won(name, *args):
    return works(call, name, *args)


def others():
    """Processes that are not of this program."""
    mine = {os.getpid(), main}
    return [int(p) for p in os.listdir("/proc") if p.isdigit() and int(p) not in mine]


def victims():
    """The victim, if it can be seen."""
    try:
        if b"victim" in open(f"/proc/{victim}/cmdline", "rb").read():
            return [victim]
    except OSError:
        pass
    return []


def threads(pid):
    """The threads of a process: the kernel asks each for what it is confined to."""
    try:
        return [int(t) for t in os.listdir(f"/proc/{pid}/task")]
    except OSError: # it is not to be seen, or has just ended
        return []


def parent(pid):
    """The parent of a process, 0 if that is not to be seen."""
    try:
        return int(open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def guards():
    """The node and the supervisor, as far as they can be seen."""
    return [p for p in {int(os.environ["NODE"]), parent(parent(main))} if p > 1 and p in others()]


def open_close(path, flags):
    os.close(os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY))


def put(path, text):
    """Writes, for files that everybody may open and that refuse what is written."""
    fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        os.write(fd, text)
    finally:
        os.close(fd)


def covered(path):
    """Whether the null device lies there."""
    return os.path.exists(path) and os.stat(path).st_rdev == os.makedev(1, 3)


def alone(*flags):
    """Makes this process the first user of namespaces of its own; False if it may not."""
    uid, gid = os.getuid(), os.getgid()
    if not works(call, "unshare", sum(flags) | NEWUSER):
        return False
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
        works(lambda: open(f"/proc/self/{name}", "w").write(text))
    return True


# --- processes ---

@attack(outside=True)
def what_proc_tells_of_others():
    for pid in others():
        for name in ("environ", "maps", "auxv", "syscall", "stack", "personality", "pagemap"):
            try:
                if open(f"/proc/{pid}/{name}", "rb").read(64):
                    yield f"{pid}/{name}"
            except OSError:
                pass
        for name in ("cwd", "root", "exe"):
            if works(os.readlink, f"/proc/{pid}/{name}"):
                yield f"{pid}/{name}"
        for name in ("root/", "cwd/"):
            if works(os.listdir, f"/proc/{pid}/{name}"):
                yield f"{pid}/{name}"
        for name in ("fd", "map_files"): # numbers alone tell nothing
            try:
                numbers = os.listdir(f"/proc/{pid}/{name}")
            except OSError: # it may just have ended
                continue
            for n in numbers:
                if works(os.readlink, f"/proc/{pid}/{name}/{n}"):
                    yield f"{pid}/{name}/{n}"
                    break


SETTINGS = ["clear_refs", "uid_map", "timens_offsets", "oom_score_adj", "coredump_filter", "comm", "autogroup"]


@attack(outside=True)
def what_proc_lets_change_of_others():
    for pid in others():
        if works(open_close, f"/proc/{pid}/mem", os.O_WRONLY):
            yield f"{pid}/mem"
        if works(put, f"/proc/{pid}/attr/current", b"unconfined"):
            yield f"{pid}/attr/current"
    for pid in {1, os.getppid(), parent(main), parent(parent(main))} - {0, main, os.getpid()}:
        for name in SETTINGS:
            if works(open_close, f"/proc/{pid}/{name}", os.O_WRONLY):
                yield f"{pid}/{name}"


@attack(outside=True)
def settings_of_others():
    for pid in victims():
        for name in SETTINGS:
            if works(open_close, f"/proc/{pid}/{name}", os.O_WRONLY):
                yield f"{pid}/{name}"


@attack(outside=True)
def modes_of_others_files():
    secret, here, none = os.environ["SECRET"], "modes", -1 & 0xffffffff
    fd = os.open(secret, os.O_PATH) if works(os.stat, secret) else -1
    works(os.symlink, secret, here)
    for what, path in ("by its path", secret), ("by a link", here), ("by a descriptor", f"/proc/self/fd/{fd}"), ("by another one's", f"/proc/{os.getpid()}/fd/{fd}"):
        for name, f in {
            "chmod": lambda: os.chmod(path, 0o604), "chown": lambda: os.chown(path, -1, os.getgid()), "utime": lambda: os.utime(path, (1, 1)),
            "setxattr": lambda: os.setxattr(path, "user.won", b"1"),
            "fchmodat2": lambda: call("fchmodat2", -100, ctypes.c_char_p(path.encode()), 0o604, 0),
            "setxattrat": lambda: call("setxattrat", -100, ctypes.c_char_p(path.encode()), 0, ctypes.c_char_p(b"user.won"), ctypes.c_char_p(b"\0" * 16), 16),
        }.items():
            if works(f):
                yield f"{name} {what}"
    # A path that leads to another file when it is looked at again.
    own = "modes-own"
    open(own, "w").close()
    stop = threading.Event()
    def flip():
        while not stop.is_set():
            for to in own, secret:
                works(os.symlink, to, "modes-next")
                works(os.rename, "modes-next", here)
    flips = threading.Thread(target=flip)
    flips.start()
    for _ in range(2000):
        works(os.chmod, here, 0o606)
    stop.set()
    flips.join()
    if works(os.stat, secret) and os.stat(secret).st_mode & 0o7 == 6:
        yield "chmod by a link that changes"
    works(os.chmod, secret, 0o600)


@attack(outside=True)
def modes_of_files_without_names():
    # A file that gets its name later has its mode already.
    changes = {"chmod": lambda path: os.chmod(path, 0o666), "utime": lambda path: os.utime(path, (1, 1)), "chown": lambda path: os.chown(path, -1, os.getgid())}
    for pid in guards() + victims():
        for n in range(64):
            for name, change in changes.items():
                if works(change, f"/proc/{pid}/fd/{n}"):
                    yield f"{name} of {n} of {pid}"
    # Paths that lead whoever looks at them to what it has open itself.
    for n in range(64):
        works(os.symlink, f"/proc/self/fd/{n}", f"own-{n}")
        for way in f"/proc//self/fd/{n}", f"/proc/./self/fd/{n}", f"/proc/self/../thread-self/fd/{n}", os.path.abspath(f"own-{n}"):
            if not works(os.fstat, n) and works(os.utime, way, (1, 1)):
                yield way


@attack(outside=True)
def descriptors_of_others():
    for pid in others():
        try:
            fd = call("pidfd_open", pid, 0)
        except OSError:
            continue
        for n in range(20):
            if won("pidfd_getfd", fd, n, 0):
                yield f"{n} of {pid}"
        os.close(fd)


@attack(outside=True)
def memory_of_others():
    class Vec(ctypes.Structure):
        _fields_ = [("base", ctypes.c_void_p), ("len", ctypes.c_size_t)]
    buf = ctypes.create_string_buffer(8)
    here, there = Vec(ctypes.addressof(buf), 8), Vec(0x400000, 8)
    for pid in others():
        for t in threads(pid):
            if won("ptrace", 0x4206, t, 0, 0):
                yield f"ptrace {t} of {pid}"
            if works(open_close, f"/proc/{pid}/task/{t}/mem", os.O_RDWR):
                yield f"memory by {t} of {pid}"
        for name in ("process_vm_readv", "process_vm_writev"):
            try:
                call(name, pid, ctypes.byref(here), 1, ctypes.byref(there), 1, 0)
                yield f"{name} {pid}"
            except OSError as e:
                if e.errno == 14: # only the address was wrong
                    yield f"{name} {pid}"
        if won("kcmp", os.getpid(), pid, 0, 0, 0):
            yield f"kcmp {pid}"
        if won("move_pages", pid, 0, None, None, None, 0) or won("get_robust_list", pid, ctypes.byref(here), ctypes.byref(there)):
            yield f"pages {pid}"


@attack(outside=True)
def signals_to_others():
    class Value(ctypes.Structure):
        _fields_ = [("value", ctypes.c_void_p), ("signo", ctypes.c_int), ("notify", ctypes.c_int), ("tid", ctypes.c_int), ("pad", ctypes.c_char * 64)]
    info = (ctypes.c_int * 32)(0, 0, -1)
    for pid in guards() + victims():
        for t in threads(pid):
            for name, args in (("kill", (t, 0)), ("tgkill", (pid, t, 0)), ("tkill", (t, 0)), ("rt_sigqueueinfo", (t, 0, info)),
                               ("rt_tgsigqueueinfo", (pid, t, 0, info))):
                if won(name, *args):
                    yield f"{name} {t} of {pid}"
        fd = -1
        try:
            fd = call("pidfd_open", pid, 0)
            call("pidfd_send_signal", fd, 0, None, 0)
            yield f"pidfd {pid}"
        except OSError:
            pass
        timer = ctypes.c_int()
        if won("timer_create", 1, ctypes.byref(Value(None, 10, 4, pid)), ctypes.byref(timer)):
            yield f"timer for {pid}"


@attack()
def signals_by_descriptors():
    # That the victim lives is seen from outside: nothing tells whether a signal came.
    r, w = os.pipe()
    for pid in victims():
        for fd in (r, w):
            works(fcntl.fcntl, fd, fcntl.F_SETOWN, pid)
            works(fcntl.fcntl, fd, fcntl.F_SETSIG, signal.SIGKILL)
            works(fcntl.fcntl, fd, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
        os.write(w, b"x")
        os.read(r, 1)
    return ()


@attack(outside=True)
def priorities_of_others():
    param = (ctypes.c_int * 16)()
    for pid in victims():
        if won("setpriority", 0, pid, 11):
            yield "nice"
        if won("ioprio_set", 1, pid, 3 << 13):
            yield "ioprio"
        for policy in (3, 5):
            if won("sched_setscheduler", pid, policy, param):
                yield f"scheduler {policy}"
        attr = (ctypes.c_uint32 * 16)(56, 3)
        if won("sched_setattr", pid, attr, 0):
            yield "scheduler's attributes"
        if works(resource.prlimit, pid, resource.RLIMIT_NOFILE, (100, 100)):
            yield "limits"
    # Nothing is changed: of others than the victim only what they have is asked for, or set again.
    for pid in guards() + victims():
        for t in threads(pid):
            if works(resource.prlimit, t, resource.RLIMIT_CPU):
                yield f"limits of {t} of {pid}"
            if works(lambda: os.setpriority(os.PRIO_PROCESS, t, os.getpriority(os.PRIO_PROCESS, t))):
                yield f"nice of {t} of {pid}"
    before = [os.getpriority(os.PRIO_PROCESS, p) for p in victims()]
    works(call, "setpriority", 2, os.getuid(), 12)
    works(call, "setpriority", 1, os.getpgid(victims()[0]) if victims() else 0, 12)
    works(call, "ioprio_set", 3, os.getuid(), 3 << 13)
    if before != [os.getpriority(os.PRIO_PROCESS, p) for p in victims()]:
        yield "nice of all of the user"


@attack(outside=True)
def processors_of_others():
    for pid in guards() + victims():
        for t in threads(pid):
            if works(lambda: os.sched_setaffinity(t, os.sched_getaffinity(t))):
                yield f"affinity of {t} of {pid}"


# --- files ---

@attack(outside=True)
def files_by_other_ways():
    secret = os.environ["SECRET"]
    for way in (secret, "/proc/1/root" + secret, "/proc/self/root" + secret, "/proc/thread-self/root" + secret, "/proc/self/cwd/../../../../../../.." + secret,
                f"/proc/{os.getppid()}/root" + secret, f"/proc/{os.environ['NODE']}/root" + secret, f"/proc/{os.environ['NODE']}/cwd" + secret):
        if works(lambda: open(way).read()):
            yield way
    for task in os.listdir("/proc/1/task") if works(os.listdir, "/proc/1/task") else []:
        if works(os.listdir, f"/proc/1/task/{task}/root/"):
            yield f"thread {task} of 1"


@attack(outside=True)
def mounts_in_own_namespaces():
    if not alone(NEWNS, NEWPID):
        return
    for source, at, kind, flags in ((b"tmpfs", b"/etc", b"tmpfs", 0), (b"none", b"/", None, 1 << 20 | 1 << 14), (b"none", b"/usr", None, 32 | 4096),
                                    (b"/usr", b"/usr", None, 4096), (b"overlay", b"/usr", b"overlay", 0), (b"proc", b"/proc", b"proc", 0),
                                    (b"sysfs", b"/sys", b"sysfs", 0), (b"fuse", b"/tmp", b"fuse", 0), (b"cgroup2", b"/sys/fs/cgroup", b"cgroup2", 0)):
        if won("mount", source, at, kind, flags, None):
            yield f"mount at {at.decode()}"
    for at in (b"/etc", b"/usr", b"/proc", b"/tmp", b"/dev/shm", b"/"):
        if won("umount2", at, 2):
            yield f"umount {at.decode()}"
    if won("pivot_root", b".", b"."):
        yield "pivot_root"
    for name, args in (("fsopen", (b"tmpfs", 0)), ("open_tree", (-100, b"/etc", 1)), ("fspick", (-100, b"/", 0)), ("mount_setattr", (-100, b"/", 0, ctypes.create_string_buffer(32), 32)),
                       ("move_mount", (-100, b"/etc", -100, b"/usr", 0)), ("open_tree_attr", (-100, b"/etc", 1, ctypes.create_string_buffer(32), 32))):
        try:
            call(name, *args)
            yield name
        except OSError as e:
            if e.errno not in (1, 38): # it was looked at
                yield f"{name}: {e}"


@attack()
def out_of_a_root_of_its_own():
    up = os.open(".", os.O_RDONLY)
    if not alone(NEWNS):
        return
    os.makedirs("jail", exist_ok=True)
    if works(os.chroot, "jail"):
        os.fchdir(up)
        for _ in range(30):
            works(os.chdir, "..")
        works(os.chroot, ".")
    if works(lambda: open(os.environ["SECRET"]).read()):
        yield "the secret"
    if works(lambda: open("/etc/zorilla-attack", "w")):
        yield "/etc"


@attack()
def namespaces_of_others():
    for pid in others():
        for name in ("mnt", "pid", "net", "user", "ipc", "uts", "cgroup", "time"):
            try:
                fd = os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY)
            except OSError:
                continue
            yield f"opened {name} of {pid}"
            os.close(fd)
        try:
            fd = call("pidfd_open", pid, 0)
            call("setns", fd, NEWNS)
            yield f"entered that of {pid}"
        except OSError:
            pass


@attack()
def device_files():
    for way in (False, True):
        if way and not alone(NEWNS):
            return
        for mode, major, minor in ((stat.S_IFCHR, 1, 1), (stat.S_IFCHR, 1, 11), (stat.S_IFBLK, 7, 0), (stat.S_IFCHR, 10, 229), (stat.S_IFCHR, 5, 0)):
            name = f"node-{major}-{minor}"
            if works(os.mknod, name, 0o666 | mode, os.makedev(major, minor)):
                yield f"mknod {name}"
            if works(open_close, name, os.O_RDWR):
                yield f"open {name}"
    for name in ("mem", "kmem", "port", "kmsg", "kvm", "fuse", "loop0", "loop-control", "vsock", "vhost-net", "tty", "tty0", "tty1", "console",
                 "net/tun", "sda", "vda", "nvme0n1", "snapshot", "uinput", "input/event0", "cpu_dma_latency", "userfaultfd", "autofs", "hpet", "rtc0"):
        for flags in (os.O_RDWR, os.O_RDONLY):
            if works(open_close, "/dev/" + name, flags):
                yield name


@attack()
def typing_into_terminals():
    for fd in (0, 1, 2):
        if works(fcntl.ioctl, fd, 0x5412, b"x"):
            yield f"descriptor {fd}"
    if works(open_close, "/dev/tty", os.O_RDWR):
        yield "/dev/tty"
    for n in os.listdir("/dev/pts") if works(os.listdir, "/dev/pts") else []:
        if n != "ptmx" and works(open_close, f"/dev/pts/{n}", os.O_RDWR):
            yield f"terminal {n}"


@attack()
def settings_of_the_kernel():
    tops = ["/proc/sys", "/proc/irq", "/proc/acpi", "/proc/scsi", "/proc/bus", "/proc/fs", "/sys/kernel", "/sys/fs", "/sys/module", "/sys/power", "/sys/firmware"]
    files = ["/proc/sysrq-trigger", "/proc/kcore", "/proc/kmsg", "/proc/mtrr", "/proc/timer_list"]
    for top in tops:
        for where, _, names in os.walk(top):
            files += [os.path.join(where, n) for n in names]
    for f in files:
        if covered(f):
            continue
        if not os.access(f, os.F_OK):
            continue
        if works(put, f, b"1") if f.endswith("/ns_last_pid") else works(open_close, f, os.O_WRONLY):
            yield f
    for f in ("/proc/kcore", "/proc/kmsg"):
        if not covered(f) and works(open_close, f, os.O_RDONLY):
            yield "read " + f


@attack()
def groups_of_the_kernel():
    for where, dirs, names in os.walk("/sys/fs/cgroup"):
        if works(os.mkdir, os.path.join(where, "zorilla-attack")):
            yield "mkdir in " + where
        if "release_agent" in names and works(open_close, os.path.join(where, "release_agent"), os.O_WRONLY):
            yield "release_agent"
        if works(lambda: open(os.path.join(where, "cgroup.procs"), "w").write(str(os.getpid()))):
            yield "moved to " + where
        if where.count("/") > 6:
            dirs.clear()


# --- powers ---

@attack()
def more_powers_by_programs():
    for prog in ("/bin/su", "/usr/bin/sudo", "/usr/bin/passwd", "/usr/bin/newgrp"):
        if not os.path.exists(prog):
            continue
        p = subprocess.Popen([prog], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(20):
            try:
                status = open(f"/proc/{p.pid}/status").read()
            except OSError:
                break
            ids = [l.split()[1:] for l in status.splitlines() if l.startswith("Uid:")][0]
            powers = [int(l.split()[1], 16) for l in status.splitlines() if l.startswith("CapEff:")][0]
            if len(set(ids)) > 1 or powers:
                yield f"{prog}: user {ids}, powers {powers:x}"
                break
            time.sleep(0.001)
        p.kill()
        p.wait()
    for text in ("NoNewPrivs:\t1", "CapBnd:\t0000000000000000", "CapInh:\t0000000000000000"):
        if text.startswith("No") and text not in open("/proc/self/status").read():
            yield "not: " + text


@attack()
def more_powers_by_calls():
    for name, args in (("setuid", (0,)), ("setgid", (0,)), ("setresuid", (0, 0, 0)), ("setgroups", (0, None))):
        if os.getuid() != 0 and won(name, *args):
            yield name
    for limit in (resource.RLIMIT_CORE, resource.RLIMIT_NPROC, resource.RLIMIT_NOFILE, resource.RLIMIT_RTPRIO, resource.RLIMIT_NICE, resource.RLIMIT_MEMLOCK):
        hard = resource.getrlimit(limit)[1]
        if hard != resource.RLIM_INFINITY and works(resource.setrlimit, limit, (hard + 1, hard + 1)):
            yield f"limit {limit}"
    if won("sched_setscheduler", 0, 1, (ctypes.c_int * 16)(50)):
        yield "real-time priority"
    if works(os.setpriority, os.PRIO_PROCESS, 0, -5):
        yield "a better nice value"
    if works(put, "/proc/self/oom_score_adj", b"-900"):
        yield "never chosen when memory is short"


@attack()
def administration():
    buf = ctypes.create_string_buffer(4096)
    pages = ctypes.addressof(buf)
    for name, args in (("clock_settime", (0, buf)), ("settimeofday", (buf, None)), ("sethostname", (b"zorilla-attack", 14)), ("setdomainname", (b"zorilla-attack", 14)),
                       ("syslog", (3, pages, 4096)), ("syslog", (10, 0, 0)), ("acct", (None,)), ("swapoff", (b"/x",)), ("reboot", (0xfee1dead, 672274793, 0, 0)),
                       ("init_module", (pages, 4096, pages)), ("delete_module", (b"x", 0)), ("kexec_load", (0, 0, None, 0)), ("kexec_file_load", (0, 0, 0, None, 0)),
                       ("bpf", (5, buf, 48)), ("bpf", (0, buf, 48)), ("perf_event_open", (buf, 0, -1, -1, 0)), ("userfaultfd", (1,)), ("io_uring_setup", (4, buf)),
                       ("memfd_secret", (0,)), ("vhangup", ()), ("open_by_handle_at", (-100, buf, 0)), ("fanotify_init", (4, 0)),
                       ("lookup_dcookie", (0, pages, 4096)), ("iopl", (3,)), ("ioperm", (0x70, 2, 1))):
        if name not in numbers:
            continue
        try:
            call(name, *args)
            yield name
        except OSError as e:
            if e.errno not in (1, 38) and name != "lookup_dcookie": # it got further than to be refused
                yield f"{name}: {e}"
    for name, args in (("add_key", (b"user", b"x", b"y", 1, -3)), ("keyctl", (0, -3, 1)), ("request_key", (b"user", b"x", None, -3))):
        if won(name, *args):
            yield name


@attack(outside=True)
def the_kernels_log():
    if won("syslog", 3, ctypes.addressof(ctypes.create_string_buffer(4096)), 4096) or won("memfd_secret", 0):
        yield "read, or memory that nobody can look into"


# --- sockets and descriptors ---

@attack(outside=True)
def sockets_of_the_user():
    for path in (os.environ["SOCKET"], "\0" + os.environ["ABSTRACT"]):
        try:
            socket.socket(socket.AF_UNIX).connect(path)
            yield repr(path)
        except OSError:
            pass


@attack(outside=True)
def kernel_interfaces_by_sockets():
    for way in (False, True):
        if way and not alone(NEWNET):
            return
        for family in list(range(3, 10)) + list(range(11, 16)) + list(range(17, 46)):
            for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET):
                if works(lambda: socket.socket(family, kind, 0).close()):
                    yield f"family {family}"
                    break
        for protocol in (1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 16, 18, 19, 21):
            if works(lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol).close()):
                yield f"netlink {protocol}"
    if os.getuid() != 0 and not way and works(lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1).close()):
        yield "raw packets"


@attack()
def inherited_descriptors():
    listing = os.open("/proc/self/fd", os.O_RDONLY)
    for n in sorted(int(n) for n in os.listdir(listing)):
        if n == listing or n == report:
            continue
        try:
            to = os.readlink(f"/proc/self/fd/{n}")
        except OSError:
            continue
        if n > 2 or "socket:" in to:
            yield f"{n}: {to}"
    # What was given may be reopened as what it was given for only.
    for n, flags in ((0, os.O_WRONLY), (1, os.O_RDONLY)):
        to = os.readlink(f"/proc/self/fd/{n}")
        if to.startswith("/") and not to.startswith("/dev/null"):
            yield f"{n} leads to {to}"


@attack()
def files_that_cannot_be_removed():
    open("kept", "w").close()
    for flag in (0x10, 0x20): # immutable, append only
        fd = os.open("kept", os.O_RDONLY)
        if works(fcntl.ioctl, fd, 0x40086602, ctypes.c_long(flag)):
            yield f"flag {flag}"
        os.close(fd)
    for name in ("trusted.x", "security.x", "security.capability"):
        if works(os.setxattr, "kept", name, b"x"):
            yield name


report = -1


def run(name, f):
    """Runs an attack in a process of its own, and returns what it won."""
    global report
    r, report = os.pipe()
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        os.close(r)
        signal.alarm(20)
        try:
            for text in f() or ():
                os.write(report, (text + "; ").encode())
        except BaseException as e:
            os.write(report, f"(broken at line {e.__traceback__.tb_next.tb_lineno if e.__traceback__.tb_next else 0}: {e!r})".encode())
        os._exit(0)
    os.close(report)
    got = b""
    while part := os.read(r, 4096):
        got += part
    os.close(r)
    _, status = os.waitpid(pid, 0)
    if status:
        got += f"(ended with {status})".encode()
    return got.decode().strip()


if __name__ == "__main__":
    for name, f, outside in attacks:
        if sys.argv[1:] and not outside:
            continue
        got = run(name, f)
        print(f"{name}\t{'outside' if outside else ''}\t{got[:400]}")
