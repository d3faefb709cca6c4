package disk

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// topDir is the flag of ext2 to ext4 by which the directories in one are unrelated to each
// other (EXT4_TOPDIR_FL, chattr +T).
const topDir = 0x20000

// Spread has the directories that will be made in a directory lie apart on its disk, where
// that helps. ext4 without a journal takes no inode that was freed in the last minute, and
// looks at all of those of a region for each file that it makes there: after a thousand
// workers in one region that costs more than all else that is made for a worker.
// With a journal it would only scatter what is written. Where it cannot be done nothing is
// lost but that.
func Spread(dir string) {
	if !unjournaled(dir) {
		return
	}
	f, err := os.Open(dir)
	if err != nil {
		return
	}
	defer f.Close()
	flags, err := unix.IoctlGetInt(int(f.Fd()), unix.FS_IOC_GETFLAGS)
	if err == nil && flags&topDir == 0 {
		_ = unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, flags|topDir)
	}
}

// unjournaled reports whether a directory is known to be on ext4 without a journal.
func unjournaled(dir string) bool {
	var fs unix.Statfs_t
	var st unix.Stat_t
	if unix.Statfs(dir, &fs) != nil || fs.Type != unix.EXT4_SUPER_MAGIC || unix.Stat(dir, &st) != nil {
		return false
	}
	device, err := os.Readlink(fmt.Sprintf("/sys/dev/block/%d:%d", unix.Major(st.Dev), unix.Minor(st.Dev)))
	if err != nil {
		return false
	}
	options, err := os.ReadFile(filepath.Join("/proc/fs/ext4", filepath.Base(device), "options"))
	if err != nil {
		return false
	}
	return !slices.ContainsFunc(strings.Fields(string(options)), func(o string) bool { return strings.HasPrefix(o, "data=") })
}
