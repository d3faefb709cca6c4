package api

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"zorilla/internal/reserved"
	"zorilla/jobs"
	"zorilla/transfer"
)

// PartSuffix is what files end with while they are not whole.
const PartSuffix = ".part"

// Partial writes what the ranks of a job have made until now, again and again, into files that
// end with PartSuffix: so that nobody takes them for whole. What is new is written where it
// belongs, so that who reads along with a file that grows sees no more than that. It is for
// one goroutine.
type Partial struct {
	service Service
	want    Wanted
	places  *reserved.Places
	parts   map[string]*partFile // by path
}

// partFile is what was written of one file.
type partFile struct {
	dir, name string
	chunks    []transfer.Hash
}

// NewPartial returns one that has written nothing. Rank, Into and Force of want count.
func NewPartial(s Service, want Wanted) *Partial {
	return &Partial{service: s, want: want, places: reserved.New(), parts: map[string]*partFile{}}
}

// Update brings the files of one rank up to date. A rank that does not run, and files that
// become shorter just now, are no errors: there is nothing new.
func (p *Partial) Update(ctx context.Context, st *jobs.Status, rank int) error {
	out, err := p.service.Snapshot(ctx, string(st.ID), rank, st.Spec.Outputs)
	if errors.Is(err, jobs.ErrNotRunning) || err == nil && out.Manifest.IsZero() {
		return nil
	}
	if err != nil {
		return err
	}
	get := chunksOf(ctx, p.service, st.ID)
	m, err := transfer.LoadManifest(get, out.Manifest)
	if err == nil {
		m.Entries, err = asked(&st.Spec, m.Entries)
		m.Entries = p.want.only(m.Entries)
	}
	for i := range m.Entries {
		if e := &m.Entries[i]; err == nil && !e.Dir {
			err = p.write(get, e, p.place(st, rank, e.Path))
		}
	}
	return err
}

// place decides where a file of a rank goes: several ranks do not share one.
func (p *Partial) place(st *jobs.Status, rank int, name string) *partFile {
	number := strconv.Itoa(rank)
	f := &partFile{dir: strings.ReplaceAll(p.want.Into, "%r", number), name: name}
	if f.dir == p.want.Into && st.Spec.Max > 1 {
		f.name += "." + number
	}
	f.name += PartSuffix
	at := path.Join(f.dir, f.name)
	if p.parts[at] != nil {
		return p.parts[at]
	}
	return f
}

func (p *Partial) write(get transfer.Getter, e *transfer.Entry, f *partFile) (err error) {
	at := path.Join(f.dir, f.name)
	if why := p.places.Why(filepath.Join(reserved.Real(f.dir), filepath.FromSlash(e.Path))); why != "" { // its final name
		return fmt.Errorf("%s %s: --into DIR takes another directory", path.Join(f.dir, e.Path), why)
	}
	if err := os.MkdirAll(f.dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(f.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	flags := os.O_WRONLY | syscall.O_NOFOLLOW
	if p.parts[at] == nil { // it must be ours
		if err := plainDirs(root, path.Dir(f.name)); err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
		if flags |= os.O_CREATE | os.O_EXCL; p.want.Force {
			_ = root.Remove(f.name) // what cannot be removed is in the way
		}
	}
	mode := fs.FileMode(0o644)
	if e.Mode != 0 {
		mode = fs.FileMode(e.Mode)&0o666 | 0o200
	}
	file, err := root.OpenFile(f.name, flags, mode)
	switch {
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("%s is in the way: remove it, or --force replaces it", at)
	case err != nil:
		return err
	}
	p.parts[at] = f
	defer func() { err = errors.Join(err, file.Close()) }()
	for i, h := range e.Chunks {
		if i < len(f.chunks) && f.chunks[i] == h {
			continue
		}
		data, err := e.Read(get, i, nil)
		if err != nil {
			return err
		}
		if _, err := file.WriteAt(data, int64(i)*transfer.ChunkSize); err != nil {
			return err
		}
		if i < len(f.chunks) {
			f.chunks[i] = h
		} else {
			f.chunks = append(f.chunks, h)
		}
	}
	f.chunks = f.chunks[:len(e.Chunks)]
	return file.Truncate(e.Size)
}

// plainDirs makes the directories that lead to a file. None of them may be a link, which would
// lead to places that nobody has asked for.
func plainDirs(root *os.Root, dir string) error {
	if dir == "." {
		return nil
	}
	if err := plainDirs(root, path.Dir(dir)); err != nil {
		return err
	}
	if err := root.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := root.Lstat(dir)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is no directory, where one is needed", dir)
	}
	return err
}

// Remove removes all that was written: the whole files are there.
func (p *Partial) Remove() {
	for at, f := range p.parts {
		if root, err := os.OpenRoot(f.dir); err == nil {
			_ = root.Remove(f.name) // what somebody else has removed is gone
			_ = root.Close()        // was only looked at
		}
		delete(p.parts, at)
	}
}
