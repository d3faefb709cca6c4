package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"zorilla/jobs/work"
)

// ErrAcked is wrapped by the errors of Worker.ReadOutput for what is below its
// last Ack.
var ErrAcked = errors.New("output before this offset was acknowledged and may be gone")

// streams is the node's view of a worker's streams, standard output first. It is
// guarded by worker.mu.
type streams struct {
	root    string
	written [2]int64
	acked   [2]int64
	files   [2]*os.File
	closed  bool
}

// advance takes what the supervisor tells, and reports whether it is news. acked
// is, after an adoption only: it is what earlier nodes have said.
func (o *streams) advance(written, acked [2]int64) bool {
	news := false
	for i := range o.written {
		o.acked[i] = max(o.acked[i], acked[i])
		news = news || written[i] > o.written[i]
		o.written[i] = max(o.written[i], written[i])
	}
	return news
}

// ack takes up to where output was delivered, as far as there is some.
func (o *streams) ack(stdout, stderr int64) {
	o.acked[0] = min(max(o.acked[0], stdout), o.written[0])
	o.acked[1] = min(max(o.acked[1], stderr), o.written[1])
}

// measure takes what the files hold as written.
func (o *streams) measure() {
	for i, s := range []work.Stream{work.Stdout, work.Stderr} {
		if info, err := os.Lstat(filepath.Join(o.root, s.String())); err == nil {
			o.written[i] = max(o.written[i], info.Size())
		}
	}
}

// complete returns an error, which wraps ErrLost, if the files do not hold all
// that was written.
func (o *streams) complete() error {
	for i, s := range []work.Stream{work.Stdout, work.Stderr} {
		info, err := os.Lstat(filepath.Join(o.root, s.String()))
		if o.written[i] > 0 && (err != nil || info.Size() < o.written[i]) {
			return fmt.Errorf("%w: not all of its %v is on the disk", ErrLost, s)
		}
	}
	return nil
}

// read is Worker.ReadOutput.
func (o *streams) read(s work.Stream, offset int64, p []byte) (int, error) {
	if s != work.Stdout && s != work.Stderr {
		return 0, fmt.Errorf("stream %d: want %d or %d", s, work.Stdout, work.Stderr)
	}
	i := int(s - work.Stdout)
	switch {
	case o.closed:
		return 0, os.ErrClosed
	case offset < o.acked[i]:
		return 0, fmt.Errorf("%v at %d: %w", s, offset, ErrAcked)
	case offset >= o.written[i] || len(p) == 0:
		return 0, nil
	}
	if o.files[i] == nil {
		f, err := os.OpenFile(filepath.Join(o.root, s.String()), os.O_RDONLY|unix.O_NOFOLLOW, 0)
		if err != nil {
			return 0, err
		}
		o.files[i] = f
	}
	n, err := o.files[i].ReadAt(p[:min(int64(len(p)), o.written[i]-offset)], offset)
	if errors.Is(err, io.EOF) && n > 0 {
		err = nil
	}
	return n, err
}

// close ends reading.
func (o *streams) close() {
	o.closed = true
	for _, f := range o.files {
		if f != nil {
			_ = f.Close()
		}
	}
	o.files = [2]*os.File{}
}
