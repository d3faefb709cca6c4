package process

import (
	"testing"

	"golang.org/x/sys/unix"
)

// What a tree reads from disks and writes to them is told with its end: of what has ended by
// itself, of what was killed, and of tasks.
func TestWhatIsReadAndWritten(t *testing.T) {
	spec := script(t, `(head -c 4M /dev/zero >f; sync f; dd if=f iflag=nocache count=0 status=none; cat f >/dev/null); rm f; exit 3`)
	var fs unix.Statfs_t
	if err := unix.Statfs(t.TempDir(), &fs); err != nil {
		t.Fatal(err)
	}
	least, most := int64(4<<20), int64(6<<20)
	if fs.Type == unix.TMPFS_MAGIC { // it has no disk
		least, most = 0, 1<<20
	}
	e, out, _ := run(t, Config{}, spec)
	if e.Code != 3 || !e.Counted || e.Written < least || e.Written > most || e.Read < least || out != "" {
		t.Errorf("%+v %q", e, out)
	}
	if e, _, _ := run(t, Config{}, script(t, "true; head -c 1M /dev/zero | cat >/dev/null")); e.Written > 1<<16 {
		t.Errorf("wrote nothing but to a pipe: %+v", e)
	}
	w := start(t, Config{}, array(t, 3, "head -c 2M /dev/zero >f"))
	w.Tasks().Add(0, []TaskRange{{0, 3}}, true)
	if e := await(t, w); e.Code != 0 || e.Written < least || e.Written > 2*most {
		t.Errorf("three tasks: %+v", e)
	}
}
