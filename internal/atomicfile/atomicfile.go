// Package atomicfile replaces files in one step: a reader, and whoever comes
// after a crash, finds the old content or the new one, never a part.
//
// A file is written beside its place under another name, made durable, renamed,
// and then its directory is made durable, which is where the name is. All
// functions may be called from any goroutine.
package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Write replaces the private file so that it is on disk, whatever happens to
// the machine, when Write returns.
func Write(path string, b []byte) error { return How{}.Write(path, b) }

// page is what is written as a whole or not at all, if nothing but a process dies.
const page = 4096

// Fill replaces the private file, which is there and may be lost, as Write does, but
// waits for the disk only once: up to a page, if what is there is not longer, is written
// in place, so that a machine that fails meanwhile leaves a mixture of old and new, which
// a checksum tells.
func Fill(path string, b []byte) error { return How{}.fill(path, b) }

func (h How) fill(path string, b []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	if info, err := f.Stat(); err != nil || len(b) > page || info.Size() > int64(len(b)) {
		return errors.Join(err, f.Close(), h.Write(path, b))
	}
	dir := make(chan error, 1)
	go func() { dir <- h.syncDir(path) }()
	if _, err = f.Write(b); err == nil {
		err = h.sync(f)
	}
	return errors.Join(err, f.Close(), <-dir)
}

// How says how a file is written. The zero How is for private files that must
// survive a machine that fails.
type How struct {
	Mode fs.FileMode // whatever the umask is; 0 = 0600
	// Temp is the directory where the file is written, on the same file system;
	// "" = where it belongs.
	Temp string
	// Sync makes a file or a directory durable; nil = as it should be.
	Sync func(*os.File) error
	// Loose is for what a machine that fails may lose.
	Loose bool
	// New makes Write fail with fs.ErrExist instead of replacing a file.
	New bool
}

// Sync makes a file durable, or the names that are in a directory.
func Sync(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Write writes the file.
func (h How) Write(path string, b []byte) error {
	temp, err := h.writeTemp(path, b)
	if err != nil {
		return err
	}
	put := os.Rename
	if h.New { // unlike a rename, a link never replaces what another process made
		put = os.Link
	}
	err = put(temp, path)
	if err != nil || h.New {
		os.Remove(temp)
	}
	if err != nil || h.Loose {
		return err
	}
	return h.syncDir(path)
}

// syncDir makes the name of a file durable.
func (h How) syncDir(path string) error {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(h.sync(dir), dir.Close())
}

func (h How) writeTemp(path string, b []byte) (string, error) {
	dir := h.Temp
	if dir == "" {
		dir = filepath.Dir(path)
	}
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*") // mode 0600, never through a link
	if err != nil {
		return "", err
	}
	_, err = f.Write(b)
	if err == nil && h.Mode != 0 {
		err = f.Chmod(h.Mode)
	}
	if err == nil {
		err = h.sync(f)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		os.Remove(f.Name())
		return "", err
	}
	return f.Name(), nil
}

func (h How) sync(f *os.File) error {
	switch {
	case h.Loose:
		return nil
	case h.Sync != nil:
		return h.Sync(f)
	}
	return f.Sync()
}
