package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// openStdin returns what rank 0 is to read, or nil for nothing; own is our own
// standard input.
func openStdin(own io.Reader, name string) (io.Reader, error) {
	switch name {
	case "none":
		return nil, nil
	case "":
		if f, ok := own.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
			// A read from a terminal whose foreground we are not in would
			// stop us. Now it fails instead.
			signal.Ignore(syscall.SIGTTIN)
			return terminal{f}, nil
		} else if ok && exhausted(f) {
			return nil, nil
		}
		return own, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("--stdin: %w", err)
	}
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil, fmt.Errorf("--stdin %s: is a directory, want a file or none", name)
	}
	return f, nil // open until the process ends
}

// exhausted reports whether it is known that nothing can be read from a file: of /dev/null, and of
// an empty pipe without a writer. Programs then see the end at their start.
func exhausted(f *os.File) bool {
	info, err := f.Stat()
	if err != nil {
		return false
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && info.Mode()&os.ModeCharDevice != 0 {
		return st.Rdev == unix.Mkdev(1, 3)
	}
	if info.Mode()&os.ModeNamedPipe == 0 {
		return false
	}
	poll := []unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLIN}}
	n, err := unix.Poll(poll, 0)
	return err == nil && n == 1 && poll[0].Revents&(unix.POLLIN|unix.POLLHUP) == unix.POLLHUP
}

// terminal reads from a terminal while this process is in its foreground.
type terminal struct{ io.Reader }

// Read implements io.Reader.
func (t terminal) Read(p []byte) (int, error) {
	for {
		n, err := t.Reader.Read(p)
		if n > 0 || !errors.Is(err, syscall.EIO) {
			return n, err
		}
		time.Sleep(time.Second) // in the background: nobody tells when we come back
	}
}

// reading notes the error that ended its reader.
type reading struct {
	io.Reader
	err error
}

// Read implements io.Reader.
func (r *reading) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil && err != io.EOF {
		r.err = err
	}
	return n, err
}
