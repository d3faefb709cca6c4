package agent

import (
	"errors"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"

	"zorilla/internal/atomicfile"
	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/internal/output"
)

// restoreStdin ends the standard input of a job: who fed it went away with the
// node. A program cannot tell that from the end that it waits for, but its user
// shall. It reports whether the input is not what it was.
func (s *Service) restoreStdin(j *job, id jobs.ID) (damaged bool, err error) {
	if j.Core.Rec.Spec.Stdin {
		end, err := os.ReadFile(s.stdinEnd(id))
		switch {
		case errors.Is(err, os.ErrNotExist):
			j.Core.Warn(s.loop.Now(), stdinCut)
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

// stdinEnd is the file that tells that a job was fed all of its input, how long
// that is, and its CRC-32C.
func (s *Service) stdinEnd(id jobs.ID) string { return filepath.Join(s.jobDir(id), "stdin.end") }

// keepStdinEnd writes it down once the input is durable.
func (s *Service) keepStdinEnd(id jobs.ID, stdin *output.Spool) error {
	if err := os.MkdirAll(s.jobDir(id), 0o700); err != nil {
		return err
	}
	if err := stdin.Sync(); err != nil {
		return err
	}
	return atomicfile.Write(s.stdinEnd(id), codec.Seal(stdin.Digest()))
}

// endsStdin reports whether the input in the file is what the end of it says.
func endsStdin(end []byte, path string) bool {
	want, err := codec.Unseal(end)
	if err != nil {
		return false
	}
	sum := crc32.New(output.Castagnoli)
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
