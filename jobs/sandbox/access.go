package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// SystemDirs may be read and executed from, as far as they exist and the
// ordinary permissions allow it. It is a list of what is allowed, so that
// homes, state directories and whatever else a machine holds stay closed.
// The entries below /run and /var are targets of links in /etc and /usr.
func SystemDirs() []string {
	dirs := []string{
		"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/proc", "/sys", "/nix", "/gnu",
		"/run/systemd/resolve/resolv.conf", "/run/systemd/resolve/stub-resolv.conf", // the directory has sockets, too
		"/run/resolvconf", "/run/NetworkManager/resolv.conf", "/run/current-system", "/run/opengl-driver",
		"/var/lib/ca-certificates", "/var/cache/fontconfig",
	}
	for _, f := range []string{"/etc/resolv.conf", "/etc/hosts", "/etc/localtime"} {
		dirs = append(dirs, linked(f)...)
	}
	return dirs
}

// Follow returns where a path that is a link leads, one link after the other, at most eight.
func Follow(path string) (to []string) {
	for range 8 {
		target, err := os.Readlink(path)
		if err != nil {
			break
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}
		path = filepath.Clean(target)
		to = append(to, path)
	}
	return to
}

// linked returns what a link leads to, one link after the other: some services keep
// files of /etc elsewhere.
func linked(path string) []string {
	var all []string
	for _, path := range Follow(path) {
		if slices.ContainsFunc([]string{"/proc", "/dev", "/tmp"}, func(dir string) bool { return within(path, dir) }) {
			break // those are a worker's own
		}
		all = append(all, path)
	}
	return all
}

// deviceFiles may be read and written.
func deviceFiles() []string {
	return []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"}
}

const (
	readRights   = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	listRights   = unix.LANDLOCK_ACCESS_FS_READ_DIR
	deviceRights = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	fileRights   = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX
	// selfRights are for /proc, where a process sets what the kernel lets it, such as the
	// names of its threads.
	selfRights = readRights | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	allRights  = 1<<15 - 1 | unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX
	// sharedRights are for directories that others use, too: no devices, and no
	// connections to what listens there.
	sharedRights = (1<<15 - 1) &^ (unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV)
)

// rule opens a path, and all below it, for some rights.
type rule struct {
	path   string
	rights uint64
	// direct: the path had no links in it when it was looked at. One that has them now
	// is not what was meant.
	direct bool
}

// Access says what a worker may do with files.
type Access struct {
	Write   []string // directories for everything, also below Hide
	Read    []string // paths to read and execute, also below Hide
	Expose  []string // paths to read and execute, as the system directories are
	Devices []string // device files, besides the null devices
	Hide    []string // closed, also where they lie below a path of Expose or Writable
	// Writable are paths of the machine to read, execute and write, but for what Expose
	// or the system directories have below them.
	Writable []string
	// Settings: files of /proc are open to write as far as the kernel lets the user write
	// them: those of its own processes, by which a program names its threads (as CUDA does at
	// its start) or volunteers to be killed first. The user must not be root, unless what is
	// the machine's there is locked (Root).
	Settings bool
	// Alone: in namespaces that the worker shares only with its job, so that nobody
	// else is to be kept from it otherwise.
	Alone bool
	// Judge, unless it is nil, is called with the directories of which it may change the files'
	// modes, owners, times and extended attributes, and with a descriptor for judge.Judge,
	// which refuses others. Landlock has no say there.
	Judge func(fd int, allowed []string) error
	// Among: what it reaches of the network is bounded by its group, which it must not
	// leave through sockets of others.
	Among bool
}

// denials says what else seccomp denies where Landlock has a version, see denyCalls. In
// namespaces only abstract unix sockets lead to others, before version 6.
func (a *Access) denials(landlock int) denials {
	return denials{others: !a.Alone, sockets: !a.Alone && landlock < 9 || a.Among && landlock < 6, truncate: !a.Alone && landlock < 3, judged: a.Judge != nil}
}

// rules returns what Landlock is to open.
func (a *Access) rules() []rule {
	var rules []rule
	for _, p := range a.Write {
		rules = append(rules, rule{path: p, rights: allRights})
	}
	for _, p := range a.Read {
		rules = append(rules, rule{path: p, rights: readRights})
	}
	rules = append(rules, rule{path: "/dev", rights: listRights})
	for _, d := range append(deviceFiles(), a.Devices...) {
		rules = append(rules, rule{path: d, rights: deviceRights})
	}
	if a.Settings {
		rules = append(rules, rule{path: "/proc", rights: selfRights})
	}
	hide := resolveAll(a.Hide)
	seen := map[string]bool{}
	readable := slices.Concat(SystemDirs(), a.Expose)
	if slices.Contains(a.Read, "/") {
		readable = nil // all of it is
	}
	for _, p := range readable {
		for _, r := range around(resolve(p), hide) {
			if !seen[r] {
				rules = append(rules, rule{r, readRights, true})
			}
			seen[r] = true
		}
	}
	for _, p := range writable(a.Writable, a.Expose, hide) {
		rules = append(rules, rule{p, sharedRights, true})
	}
	for _, p := range topmost(a.Writable) { // as an owner shows the devices of a network
		if p = resolve(p); within(p, "/dev") {
			rules = append(rules, rule{p, deviceRights | listRights, true})
		}
	}
	return rules
}

// changeable returns the directories in which rules let files be made: their modes, owners, times
// and attributes may be changed, too.
func changeable(rules []rule) (dirs []string) {
	for _, r := range rules {
		if r.rights&unix.LANDLOCK_ACCESS_FS_MAKE_REG != 0 {
			if !r.direct {
				r.path = resolve(r.path)
			}
			dirs = append(dirs, r.path)
		}
	}
	return dirs
}

// writable returns paths that together open all of some paths for writing, but for what
// is hidden or only to be read. The directories above that are not among them: who could
// rename those would put something else in its place.
func writable(paths, read, hide []string) (all []string) {
	for _, p := range resolveAll(paths) {
		closed := append(slices.Clone(hide), "/dev")
		for _, r := range resolveAll(append(SystemDirs(), read...)) {
			if r != p && within(r, p) {
				closed = append(closed, r)
			}
		}
		if slices.Contains(closed, p) { // its links lead there
			continue
		}
		all = append(all, around(p, closed)...)
	}
	return all
}

// around returns paths that together are all of path but what is hidden.
// Rules cover everything below them, so around a hidden directory each
// neighbour gets a rule of its own, and the directories above it cannot be
// listed. Links there get none: their targets may be hidden.
func around(path string, hide []string) []string {
	above := false
	for _, h := range hide {
		if within(path, h) {
			return nil
		}
		above = above || within(h, path)
	}
	if !above {
		return []string{path}
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil
	}
	var all []string
	for _, e := range entries {
		if e.Type()&os.ModeSymlink == 0 {
			all = append(all, around(filepath.Join(path, e.Name()), hide)...)
		}
	}
	return all
}

func resolveAll(paths []string) []string {
	all := make([]string, 0, len(paths))
	for _, p := range paths {
		all = append(all, resolve(p))
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
