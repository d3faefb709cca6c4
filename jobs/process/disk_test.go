package process

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"zorilla/jobs/work"
)

// The limit of a worker's files, and its end for want of room, do not depend on what
// confines it, nor on the node that started it.
func TestDisk(t *testing.T) {
	const (
		tooMuch = "needed more than 4 MiB of disk space (--disk)"
		crowded = "ended, since the disk of its node was nearly full: its files took 8 MiB"
	)
	fill := "echo ready; until [ -e go ]; do sleep 0.02; done; head -c 8388608 /dev/zero > sub/big; sync sub/big; exec sleep 60.2049"
	for name, cfg := range map[string]Config{"all": {Grace: time.Second}, "basic": {Grace: time.Second, Basic: true}} {
		for _, adopted := range []bool{false, true} {
			for _, full := range []bool{false, true} {
				spec := script(t, "mkdir -p sub; "+fill)
				spec.NodeLimit = time.Hour
				if !full {
					spec.Disk = 4 << 20
				}
				w := begin(t, cfg, spec, adopted)
				dir := filepath.Join(spec.Root, workDir)
				if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o644); err != nil {
					t.Fatal(err)
				}
				cause, why := work.Disk, tooMuch
				if full {
					cause, why = work.Full, crowded
					w.Yield(8 << 20)
				}
				if e := await(t, w); e.Cause != cause || e.Code != 137 || e.Detail != why {
					t.Errorf("%s, adopted %v: %+v", name, adopted, e)
				}
				if left, err := os.ReadDir(dir); full && (err != nil || len(left) > 0) {
					t.Errorf("%s, adopted %v: its files are still there: %v, %v", name, adopted, left, err)
				}
			}
		}
	}
}

// begin starts a worker, which another node adopts if that is wanted.
func begin(t *testing.T, cfg Config, spec Spec, adopted bool) Worker {
	t.Helper()
	r := probed(t, cfg)
	w, err := r.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	awaitOutput(t, w, 6)
	if adopted {
		w.Leave()
		if w, err = probed(t, cfg).Adopt(t.Context(), spec.Root); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		w.Stop(0, 0)
		await(t, w)
		_ = w.Close()
	})
	return w
}

// What was removed and is still open counts where room is to be made, for its worker alone.
func TestMeasure(t *testing.T) {
	for name, cfg := range map[string]Config{"all": {Grace: time.Second}, "basic": {Grace: time.Second, Basic: true}} {
		dir, roots := t.TempDir(), []string{}
		for i, command := range []string{"exec 3>file; rm file; head -c 8388608 /dev/zero >&3; sync /dev/fd/3; echo ready; sleep 3600", "echo ready; sleep 3600"} {
			spec := script(t, command)
			spec.Group = "job"
			spec.Root = filepath.Join(dir, strconv.Itoa(i))
			if err := MakeRoot(spec.Root, "test"); err != nil {
				t.Fatal(err)
			}
			roots = append(roots, spec.Root)
			begin(t, cfg, spec, false)
		}
		if got := Measure(time.Minute, roots); got[0] < 8<<20 || got[0] > 9<<20 || got[1] > 1<<20 {
			t.Errorf("%s: %d", name, got)
		}
	}
}
