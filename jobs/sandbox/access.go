package sandbox

import (
	"os"
	"path/filepath"
	"strings"

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

// Access says what a worker may do with files.
type Access struct {
	Write   []string // directories for everything, also below Hide
	Read    []string // paths to read and execute, also below Hide
	Expose  []string // paths to read and execute, as the system directories are
	Devices []string // device files, besides the null devices
	Hide    []string // closed, also where they lie below a path of Expose
	// Alone: in namespaces that the worker shares only with its job, so that nobody
	// else is to be kept from it otherwise.
	Alone bool
}

// rules returns what Landlock is to open.
func (a *Access) rules() []rule {
	var rules []rule
	for _, p := range a.Write {
		rules = append(rules, rule{p, allRights})
	}
	for _, p := range a.Read {
		rules = append(rules, rule{p, readRights})
	}
	rules = append(rules, rule{"/dev", listRights})
	for _, d := range append(deviceFiles(), a.Devices...) {
		rules = append(rules, rule{d, deviceRights})
	}
	var hide []string
	for _, h := range a.Hide {
		hide = append(hide, resolve(h))
	}
	seen := map[string]bool{}
	for _, p := range append(systemDirs(), a.Expose...) {
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
