package entries

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// raw is an open file of a disk. The runtime's poller, to which an os.File is shown, can
// do nothing for it, and to ask it costs as much as to write.
type raw struct {
	fd   int
	path string
	size int64 // when it was opened
}

// openRaw opens a regular file, not through a link; the error wraps fs.ErrInvalid for
// anything else that is only to be read.
func openRaw(path string, flags int) (*raw, error) {
	f := &raw{path: path}
	err := again(func() (err error) {
		f.fd, err = unix.Open(path, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, 0o600)
		return err
	})
	if err != nil {
		return nil, f.failed("open", err)
	}
	var st unix.Stat_t
	if err := again(func() error { return unix.Fstat(f.fd, &st) }); err != nil {
		return nil, errors.Join(f.failed("stat", err), f.close())
	}
	switch {
	case st.Mode&unix.S_IFMT == unix.S_IFREG:
		f.size = st.Size
	case flags&unix.O_ACCMODE == unix.O_RDONLY:
		return nil, errors.Join(fs.ErrInvalid, f.close())
	}
	return f, nil
}

// again does what a signal may interrupt.
func again(f func() error) error {
	for {
		if err := f(); err != unix.EINTR {
			return err
		}
	}
}

func (f *raw) failed(op string, err error) error {
	if err == nil {
		return nil
	}
	return &os.PathError{Op: op, Path: f.path, Err: err}
}

func (f *raw) close() error { return f.failed("close", unix.Close(f.fd)) }

func (f *raw) sync() error {
	return f.failed("sync", again(func() error { return unix.Fsync(f.fd) }))
}

func (f *raw) truncate(size int64) error {
	return f.failed("truncate", again(func() error { return unix.Ftruncate(f.fd, size) }))
}

// readAt reads what there is from an offset on, as much as fits.
func (f *raw) readAt(b []byte, at int64) (n int, err error) {
	for n < len(b) {
		more := 0
		err := again(func() (err error) {
			more, err = unix.Pread(f.fd, b[n:], at+int64(n))
			return err
		})
		if err != nil || more == 0 {
			return n, f.failed("read", err)
		}
		n += more
	}
	return n, nil
}

// all reads the file, also what has come since it was opened.
func (f *raw) all() ([]byte, error) {
	b := make([]byte, 0, f.size+1)
	for {
		n, err := f.readAt(b[len(b):cap(b)], int64(len(b)))
		if b = b[:len(b)+n]; err != nil || len(b) < cap(b) {
			return b, err
		}
		b = append(b, 0)[:len(b)]
	}
}

// put writes all of b by what writes from a place in it on.
func (f *raw) put(b []byte, write func(from int) (int, error)) error {
	for done := 0; done < len(b); {
		n := 0
		err := again(func() (err error) {
			n, err = write(done)
			return err
		})
		if err == nil && n == 0 {
			err = io.ErrShortWrite
		}
		if err != nil {
			return f.failed("write", err)
		}
		done += n
	}
	return nil
}

// append writes at the end of a file that was opened for that.
func (f *raw) append(b []byte) error {
	return f.put(b, func(from int) (int, error) { return unix.Write(f.fd, b[from:]) })
}

func (f *raw) writeAt(b []byte, at int64) error {
	return f.put(b, func(from int) (int, error) { return unix.Pwrite(f.fd, b[from:], at+int64(from)) })
}

// invalid says what is wanted where there is something else.
func invalid(path string, limit int64) error {
	return fmt.Errorf("%s: %w: want a file of at most %d bytes", path, fs.ErrInvalid, limit)
}
