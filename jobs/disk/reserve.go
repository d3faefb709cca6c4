package disk

import (
	"fmt"
	"syscall"

	"zorilla/internal/units"
)

// Reserve is what is left free on the disk of a directory, whatever is written there in
// somebody's name: the node's own notes have to find room. The zero Reserve leaves nothing.
type Reserve struct {
	Dir  string
	Keep int64 // bytes; <= 0 = nothing
}

// Check returns an error, which wraps syscall.ENOSPC, if so many bytes more would not leave enough.
// What is written stops a tenth above Keep, where no worker has to make room yet.
func (r Reserve) Check(bytes int64) error {
	var st syscall.Statfs_t
	if r.Keep <= 0 || syscall.Statfs(r.Dir, &st) != nil { // who writes will hear what is wrong there
		return nil
	}
	if int64(st.Bavail)*int64(st.Bsize)-bytes >= r.Keep+r.Keep/10 {
		return nil
	}
	return fmt.Errorf("%s of it are kept free (--keep-free): %w", units.Bytes(r.Keep), syscall.ENOSPC)
}
