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

// little is what may be written as long as Keep is free.
const little = 64 << 10

// Check returns an error, which wraps syscall.ENOSPC, if so many bytes more, of what has some
// already, would not leave enough. It stops a tenth above Keep, where no worker has to make room
// yet, and where there is still some for what is little in all.
func (r Reserve) Check(have, more int64) error {
	var st syscall.Statfs_t
	if r.Keep <= 0 || syscall.Statfs(r.Dir, &st) != nil { // who writes will hear what is wrong there
		return nil
	}
	least := r.Keep
	if have > little-more {
		least += r.Keep / 10
	}
	if int64(st.Bavail)*int64(st.Bsize)-more >= least {
		return nil
	}
	return fmt.Errorf("%s of it are kept free (--keep-free): %w", units.Bytes(r.Keep), syscall.ENOSPC)
}
