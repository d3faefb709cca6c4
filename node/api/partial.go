package api

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"

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
	service interface {
		Service
		Snapshotter
	}
	want  Wanted
	parts map[string]*partFile // by path
}

// partFile is what was written of one file.
type partFile struct {
	dir, name string
	chunks    []transfer.Hash
}

// NewPartial returns one that has written nothing. Rank, Into and Force of want count.
func NewPartial(s interface {
	Service
	Snapshotter
}, want Wanted) *Partial {
	return &Partial{service: s, want: want, parts: map[string]*partFile{}}
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
		err = checkOutputs(&st.Spec, m)
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
	if err := os.MkdirAll(f.dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(f.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	flags := os.O_WRONLY
	if p.parts[at] == nil { // it must be ours
		if err := root.MkdirAll(path.Dir(f.name), 0o755); err != nil {
			return err
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
