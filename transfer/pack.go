package transfer

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// maxFile is how large a file may be, in bytes.
const maxFile = int64(maxChunks) * ChunkSize

// The records of a pack; doc.go has the layout.
const (
	packFile = 'f'
	packDir  = 'd'
	packData = 'b'
	packEnd  = 'e'
	packMode = 'm'
)

// Pack is files that travel as one stream of bytes. It is for many small files
// that nobody else asks for; manifests and chunks are for trees and large files.
type Pack struct {
	root  *os.Root
	files []*source
}

// Gather finds files below dir as Collect does, with the same warnings, and
// makes sure that they can be read. Of skip (nil = nothing) links and directories
// count, which need not be valid ones.
func Gather(ctx context.Context, dir string, globs []string, skip *Manifest) (*Pack, []string, error) {
	c, err := newCollector(ctx, dir, globs, skip)
	if err != nil {
		return nil, nil, err
	}
	p := &Pack{root: c.root}
	if err := c.walk("", c.want, 0); err != nil {
		p.Close()
		return nil, nil, err
	}
	p.files = c.drop()
	for _, s := range p.files {
		if err := s.look(); err != nil {
			p.Close()
			return nil, nil, err
		}
	}
	return p, c.allWarnings(globs), nil
}

// look opens a file and takes its size and mode.
func (s *source) look() error {
	if s.entry.Dir {
		return nil
	}
	f, err := s.open()
	if err != nil {
		return err
	}
	defer f.Close()
	return s.measure(f)
}

func (s *source) measure(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("read %s: %w", s.label, err)
	}
	if info.Size() > maxFile {
		return fmt.Errorf("%s: %d bytes, at most %d", s.label, info.Size(), maxFile)
	}
	s.entry.Size = info.Size()
	s.entry.setMode(info.Mode())
	return nil
}

// Close lets go of the directory.
func (p *Pack) Close() { p.root.Close() }

// Empty reports whether there are no files.
func (p *Pack) Empty() bool { return len(p.files) == 0 }

// Write writes the files. A file that has changed since Gather is ErrChanged.
func (p *Pack) Write(w *bufio.Writer) error {
	for _, s := range p.files {
		if err := s.pack(w); err != nil {
			return err
		}
	}
	tail := []byte{packEnd}
	for i, s := range p.files {
		if s.entry.Mode != 0 {
			tail = binary.AppendUvarint(binary.AppendUvarint(append(tail, packMode), uint64(i)), uint64(s.entry.Mode))
		}
	}
	if _, err := w.Write(tail); err != nil {
		return err
	}
	return w.Flush()
}

func (s *source) pack(w *bufio.Writer) error {
	e := s.entry
	head := []byte{packFile}
	if e.Dir {
		head[0] = packDir
	}
	head = binary.AppendUvarint(head, uint64(len(e.Path)))
	head = append(head, e.Path...)
	if e.Dir {
		_, err := w.Write(head)
		return err
	}
	f, err := s.open()
	if err != nil {
		return err
	}
	defer f.Close()
	if err := s.measure(f); err != nil {
		return err
	}
	if s.entry.Size != e.Size {
		return changed(s.label)
	}
	exec := uint64(0)
	if s.entry.Exec {
		exec = 1
	}
	if _, err := w.Write(binary.AppendUvarint(binary.AppendUvarint(head, exec), uint64(e.Size))); err != nil {
		return err
	}
	return s.packBytes(w, f)
}

// sparse is how large a file must be to be asked for its holes.
const sparse = 1 << 20

// packBytes writes what a file holds, without its holes.
func (s *source) packBytes(w *bufio.Writer, f *os.File) error {
	const seekData, seekHole = 3, 4
	size := s.entry.Size
	for at := int64(0); at < size; {
		end := size
		if size >= sparse {
			data, err := f.Seek(at, seekData)
			if errors.Is(err, syscall.ENXIO) {
				return nil // a hole up to the end
			}
			if err == nil {
				at = data
				end, err = f.Seek(at, seekHole)
			}
			if err != nil {
				end = size // this file system does not tell
			}
		}
		end = min(end, size)
		if _, err := w.Write(binary.AppendUvarint(binary.AppendUvarint([]byte{packData}, uint64(at)), uint64(end-at))); err != nil {
			return err
		}
		n, err := io.Copy(w, io.NewSectionReader(f, at, end-at))
		if err != nil {
			return fmt.Errorf("read %s: %w", s.label, bare(err))
		}
		if at += n; at != end {
			return changed(s.label)
		}
	}
	return nil
}
