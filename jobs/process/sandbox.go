package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"unsafe"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"golang.org/x/sys/unix"
)

// systemDirs may be read and executed from, as far as they exist and the
// ordinary permissions allow it. It is a list of what is allowed, so that
// homes, state directories and whatever else a machine holds stay closed.
// The entries below /run and /var are targets of links in /etc and /usr.
func systemDirs() []string {
	return []string{
		"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/proc", "/sys", "/nix", "/gnu",
		"/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager/resolv.conf", "/run/current-system", "/run/opengl-driver",
		"/var/lib/ca-certificates", "/var/cache/fontconfig",
	}
}

// deviceFiles may be read and written.
func deviceFiles() []string {
	return []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}
}

const (
	readRights   = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	listRights   = unix.LANDLOCK_ACCESS_FS_READ_DIR
	deviceRights = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	fileRights   = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX
	allRights    = 1<<15 - 1 | unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX
)

// rule opens a path, and all below it, for some rights.
type rule struct {
	path   string
	rights uint64
}

// sandboxRules lists what the worker in root may do with files.
func sandboxRules(root string, expose, devices, hide []string) []rule {
	hide = append([]string{root}, hide...)
	for i, h := range hide {
		hide[i] = resolve(h)
	}
	rules := []rule{
		{filepath.Join(root, workDir), allRights},
		{filepath.Join(root, tmpDir), allRights},
		{"/dev", listRights},
	}
	for _, d := range append(deviceFiles(), devices...) {
		rules = append(rules, rule{d, deviceRights})
	}
	seen := map[string]bool{}
	for _, p := range append(systemDirs(), expose...) {
		for _, r := range readable(p, hide) {
			if !seen[r] {
				rules = append(rules, rule{r, readRights})
			}
			seen[r] = true
		}
	}
	return rules
}

// readable returns paths that together open all of path but what is hidden.
// Rules cover everything below them, so around a hidden directory each
// neighbour gets a rule of its own, and the directories above it cannot be
// listed. Links there get none: their targets may be hidden.
func readable(path string, hide []string) []string {
	path = resolve(path)
	around := false
	for _, h := range hide {
		if within(path, h) {
			return nil
		}
		around = around || within(h, path)
	}
	if !around {
		return []string{path}
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil
	}
	var all []string
	for _, e := range entries {
		if e.Type()&os.ModeSymlink == 0 {
			all = append(all, readable(filepath.Join(path, e.Name()), hide)...)
		}
	}
	return all
}

// resolve follows the links in a path; one that does not exist stays as it is.
func resolve(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return filepath.Clean(path)
}

// within reports whether path is dir or lies below it; both are clean.
func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// landlockVersion returns the kernel's Landlock version, 0 for none.
func landlockVersion() int {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(v)
}

// confine restricts the calling thread, and what it will start, for good. The
// caller has locked its goroutine to the thread. Without Landlock in the
// kernel files stay as open as the user's permissions make them.
func confine(rules []rule) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no new privileges: %w", err)
	}
	if v := landlockVersion(); v > 0 {
		if err := restrictFiles(rules, v); err != nil {
			return err
		}
	}
	if seccomp.Supported() {
		return denyCalls()
	}
	return nil
}

// dropCapabilities takes root's powers from the calling thread and from what it
// will start; of root only the ownership of files remains. It is for nodes
// that run as root without a user for their workers: some powers reach past
// Landlock, such as reading the memory maps and environments of others.
func dropCapabilities() error {
	const noRoot = 1<<0 | 1<<1 // SECBIT_NOROOT and its lock: an exec by user 0 gives nothing back
	if err := unix.Prctl(unix.PR_SET_SECUREBITS, noRoot, 0, 0, 0); err != nil {
		return fmt.Errorf("drop capabilities: %w (give the workers a user of their own: --run-as)", err)
	}
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&head, &none[0]); err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	return nil
}

// restrictFiles applies the rules to the calling thread alone. Rights that the
// kernel's version does not know are left out, but for moves between
// directories: before version 2 they are denied everywhere.
func restrictFiles(rules []rule, version int) error {
	attr := unix.LandlockRulesetAttr{Handled_access_fs: 1<<13 - 1}
	if version >= 2 {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if version >= 3 {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if version >= 6 {
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	if version >= 9 {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX
	}
	r, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return fmt.Errorf("landlock: %w", errno)
	}
	set := int(r)
	defer unix.Close(set)
	for _, rule := range rules {
		if err := addRule(set, rule, attr.Handled_access_fs); err != nil {
			return fmt.Errorf("landlock: %s: %w", rule.path, err)
		}
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, r, 0, 0); errno != 0 {
		return fmt.Errorf("landlock: %w", errno)
	}
	return nil
}

func addRule(set int, r rule, handled uint64) error {
	fd, err := unix.Open(r.path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EACCES) {
		return nil // nothing there to be opened
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	rights := r.rights & handled
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= fileRights
	}
	if rights == 0 {
		return nil
	}
	attr := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(set), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&attr)), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// denyCalls keeps the calling thread from kernel interfaces that no job needs
// and that have a history of holes. ptrace and unshare stay: debuggers,
// browsers and nested sandboxes use them, and Landlock confines both.
func denyCalls() error {
	err := seccomp.LoadFilter(seccomp.Filter{NoNewPrivs: true, Policy: seccomp.Policy{
		DefaultAction: seccomp.ActionAllow,
		Syscalls: []seccomp.SyscallGroup{{Action: seccomp.ActionErrno, Names: []string{
			"mount", "umount2", "pivot_root", "setns", "bpf", "perf_event_open", "userfaultfd", "keyctl", "add_key", "request_key",
			"kexec_load", "init_module", "finit_module", "delete_module", "swapon", "swapoff", "reboot", "open_by_handle_at",
		}}},
	}})
	if err != nil {
		return fmt.Errorf("seccomp: %w", err)
	}
	return nil
}

// onOwnThread runs f on a thread that is used for nothing else and lives as
// long as the process: what f restricts stays on that thread, and a child
// that is bound to the life of its parent's thread does not die with it. It
// is never the main thread, whose restrictions the kernel shows as those of
// the whole process.
func onOwnThread(f func()) {
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			onOwnThread(f)
		} else {
			f()
		}
		select {}
	}()
}

// nobody is the user that the probe tries to become.
const nobody = 65534

// probe tries every limit on this process, which does nothing else, and
// writes the names of those that work, one per line.
func probe(w io.Writer) error {
	checks := []struct {
		name string
		try  func() error
	}{
		{"walltime", func() error { return nil }}, // needs a clock only
		{"tree-kill", probeTree},
		{"memory", probeMemory},
		{"landlock", probeLandlock},
		{"seccomp", probeSeccomp},
		{"user", probeUser},
	}
	for _, c := range checks {
		done := make(chan error, 1)
		onOwnThread(func() { done <- c.try() })
		if <-done != nil {
			continue
		}
		if _, err := fmt.Fprintln(w, c.name); err != nil {
			return err
		}
	}
	return nil
}

var errNotEnforced = errors.New("accepted, but without effect")

func probeTree() error {
	if _, err := identify(os.Getpid()); err != nil {
		return err
	}
	return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
}

func probeMemory() error {
	if resident(os.Getpid()) == 0 {
		return errNotEnforced
	}
	return nil
}

func probeLandlock() error {
	v := landlockVersion()
	if v == 0 {
		return unix.ENOSYS
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	if err := restrictFiles(nil, v); err != nil {
		return err
	}
	fd, err := unix.Open("/", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err == nil {
		_ = unix.Close(fd)
		return errNotEnforced
	}
	return nil
}

func probeSeccomp() error {
	if !seccomp.Supported() {
		return unix.ENOSYS
	}
	if err := denyCalls(); err != nil {
		return err
	}
	if _, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_SESSION_KEYRING, false); err != unix.EPERM {
		return errNotEnforced
	}
	return nil
}

// probeUser becomes another user on its own thread alone: the system calls
// proper, not their wrappers, which change all threads.
func probeUser() error {
	for _, c := range [][3]uintptr{{unix.SYS_SETGROUPS, 0, 0}, {unix.SYS_SETRESGID, nobody, nobody}, {unix.SYS_SETRESUID, nobody, nobody}} {
		var third uintptr
		if c[0] != unix.SYS_SETGROUPS {
			third = nobody
		}
		if _, _, errno := unix.RawSyscall(c[0], c[1], c[2], third); errno != 0 {
			return errno
		}
	}
	return nil
}
