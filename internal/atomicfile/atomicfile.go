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

// How says how a file is written. The zero How is for private files that must
// survive a machine that fails.
type How struct {
	Mode fs.FileMode // whatever the umask is; 0 = 0600
	// Temp is the directory where the file is written, on the same file system;
	// "" = where it belongs.
	Temp string
	// Prepare is called with the file before it gets its name; nil = nothing.
	Prepare func(*os.File) error
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

// SyncDir makes the name of a file durable.
func SyncDir(path string) error { return Sync(filepath.Dir(path)) }

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
	if err == nil && h.Prepare != nil {
		err = h.Prepare(f)
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
