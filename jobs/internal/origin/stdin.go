package origin

import (
	"errors"
	"hash/crc32"
	"io"
	"os"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/internal/output"
	"zorilla/vicinity"
)

// restoreStdin ends the standard input of a job: who fed it went away with the
// node. A program cannot tell that from the end that it waits for, but its user
// shall. It reports whether the input is not what it was.
func (d *disk) restoreStdin(j *job, id jobs.ID) (damaged bool, err error) {
	if j.Primary.Rec.Spec.Stdin {
		end, err := os.ReadFile(d.stdinEnd(id))
		switch {
		case errors.Is(err, os.ErrNotExist):
			j.Primary.Warn(time.Now(), stdinCut)
		case err != nil:
			return false, err
		default:
			damaged = !endsStdin(end, j.stdin.Path)
		}
	}
	return damaged, j.stdin.Close()
}

const (
	stdinCut     = "its standard input may be incomplete: the node that took it died meanwhile"
	stdinDamaged = "its standard input is damaged: the disk of its origin lost some of it"
)

// endsStdin reports whether the input in the file is what the end of it says.
func endsStdin(end []byte, path string) bool {
	want, err := codec.Unseal(end)
	if err != nil {
		return false
	}
	sum := crc32.New(codec.Castagnoli())
	size := int64(0)
	f, err := os.Open(path)
	if err == nil {
		size, err = io.Copy(sum, f)
		f.Close()
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) { // of no input there is no file
		return false
	}
	return string(output.Digest(size, sum.Sum32())) == string(want)
}

// Stdin is the standard input of a job that a node works for, else nil. It may be
// called from any goroutine.
func (o *Jobs) Stdin(from vicinity.ID, id jobs.ID) (stdin *output.Spool) {
	o.loop.Call(func() {
		if j := o.jobs[id]; j != nil && j.Primary.Parts[from] != nil {
			stdin = j.stdin
		}
	})
	return stdin
}
