package transfer

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path"
)

// Tree is a directory that files are written to one by one, with the care of
// Manifest.Write. It is used by one goroutine.
type Tree struct{ w *treeWriter }

// OpenTree makes the directory if it is missing.
func OpenTree(dir string) (*Tree, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("write files: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("write files: %w", err)
	}
	w := &treeWriter{prefix: ".zorilla-" + rand.Text()}
	w.dirs = []*openDir{newOpenDir("", root)}
	return &Tree{w}, nil
}

// Close lets go of the directory.
func (t *Tree) Close() { t.w.leave(0) }

// Put makes a file, or a directory, under the name in e. fill writes the bytes.
func (t *Tree) Put(e Entry, fill func(*os.File) error) error {
	if err := CheckPath(e.Path); err != nil {
		return fmt.Errorf("write %.100q: %w", e.Path, err)
	}
	if e.Dir {
		return t.w.entry(&e)
	}
	d, err := t.w.enter(dirOf(e.Path))
	if err != nil {
		return err
	}
	wr, err := t.w.begin(d, &e)
	if err != nil {
		return err
	}
	if err := fill(wr.file); err != nil {
		wr.failed.Store(true)
		return cmp.Or(wr.done(), fmt.Errorf("write %s: %w", e.Path, err))
	}
	return wr.done()
}

// Rename gives a file another name in its directory, unless that name is taken.
func (t *Tree) Rename(from, to string) error {
	d, err := t.w.enter(dirOf(from))
	if err != nil {
		return err
	}
	if _, err := d.root.Lstat(path.Base(to)); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := d.root.Rename(path.Base(from), path.Base(to)); err != nil {
		return fmt.Errorf("write %s: %w", to, bare(err))
	}
	return nil
}
