package mpi

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"zorilla/internal/atomicfile"
)

// Libraries are the files of one node that its ranks load.
type Libraries struct {
	Client string // Open MPI's half of PMI-1
	Finish string // what MPICH is helped with to end, and to yield, by LD_PRELOAD
}

// In returns them by their paths in another directory, as a program sees it.
func (l Libraries) In(dir string) Libraries {
	for _, path := range []*string{&l.Client, &l.Finish} {
		if *path != "" {
			*path = filepath.Join(dir, filepath.Base(*path))
		}
	}
	return l
}

// ErrNoLibrary says that there are no libraries for this kind of machine.
var ErrNoLibrary = errors.New("open mpi cannot be served on " + runtime.GOOS + "/" + runtime.GOARCH + ": there is no library for it")

// Library returns the client library for this machine, or ErrNoLibrary.
func Library() ([]byte, error) {
	if len(client) == 0 {
		return nil, ErrNoLibrary
	}
	return client, nil
}

// Install puts the libraries into a directory, where everybody may read them, and
// returns their paths, which the directory makes absolute or not. Files that are
// right already are left; several may install at once.
func Install(dir string) (Libraries, error) {
	if len(client) == 0 {
		return Libraries{}, ErrNoLibrary
	}
	l := Libraries{filepath.Join(dir, "libzpmi.so"), filepath.Join(dir, "libzfinish.so")}
	for _, f := range []struct {
		path    string
		content []byte
	}{{l.Client, client}, {l.Finish, finish}} {
		if err := install(f.path, f.content); err != nil {
			return Libraries{}, fmt.Errorf("install the libraries for mpi: %w", err)
		}
	}
	return l, nil
}

// Link gives one directory the libraries of another, which have to be there.
func Link(from, to string) (Libraries, error) {
	l := Libraries{filepath.Join(to, "libzpmi.so"), filepath.Join(to, "libzfinish.so")}
	for _, path := range []string{l.Client, l.Finish} {
		if err := os.Link(filepath.Join(from, filepath.Base(path)), path); err != nil {
			return Libraries{}, fmt.Errorf("link the libraries for mpi: %w", err)
		}
	}
	return l, nil
}

func install(path string, content []byte) error {
	const mode = 0o644
	if info, err := os.Lstat(path); err == nil && info.Mode() == mode && info.Size() == int64(len(content)) {
		if have, err := os.ReadFile(path); err == nil && bytes.Equal(have, content) {
			return nil
		}
	}
	// Running programs have the old file mapped: it is replaced, never written.
	return atomicfile.How{Mode: mode, Loose: true}.Write(path, content)
}
