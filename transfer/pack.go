package transfer

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
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

// ErrPack is wrapped by the errors about packs that are none.
var ErrPack = errors.New("not a pack of files")

// PackReader reads what Pack.Write wrote, and trusts none of it.
type PackReader struct {
	r    *bufio.Reader
	file Entry // whose bytes may follow
	at   int64 // of the bytes that come next
	left int64 // how many do, before the next record

	count int            // entries so far
	modes map[int]uint32 // of some of them; known at the end
}

// NewPackReader returns a reader of one pack, which ends where r does.
func NewPackReader(r io.Reader) *PackReader { return &PackReader{r: bufio.NewReader(r)} }

// Next puts the chunks of the next file and returns its entry, or that of an
// empty directory. It returns io.EOF at the end; then Modes knows more.
func (p *PackReader) Next(put Putter) (Entry, error) {
	kind, err := p.r.ReadByte()
	if err != nil {
		return Entry{}, cutShort(err)
	}
	if kind == packEnd {
		if err := p.readModes(); err != nil {
			return Entry{}, cutShort(err)
		}
		return Entry{}, io.EOF
	}
	p.count++
	if kind != packFile && kind != packDir {
		return Entry{}, fmt.Errorf("%w: record %d", ErrPack, kind)
	}
	n, err := p.number(MaxPath)
	name := make([]byte, n)
	if err == nil {
		_, err = io.ReadFull(p.r, name)
	}
	if err != nil {
		return Entry{}, cutShort(err)
	}
	e := Entry{Path: string(name), Dir: kind == packDir}
	if err := CheckPath(e.Path); err != nil {
		return Entry{}, fmt.Errorf("%w: %.100q: %v", ErrPack, e.Path, err)
	}
	if e.Dir {
		return e, nil
	}
	exec, err := p.number(1)
	if err == nil {
		e.Exec = exec == 1
		e.Size, err = p.number(maxFile)
	}
	if err == nil {
		p.file, p.at, p.left = e, 0, 0
		err = p.chunks(&e, put)
	}
	return e, cutShort(err)
}

// readModes reads what follows the end. Who wrote 'e' last knew of no modes, and what is
// not known here belongs to a later version.
func (p *PackReader) readModes() error {
	p.modes = map[int]uint32{}
	for {
		kind, err := p.r.ReadByte()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if kind != packMode {
			_, err = io.Copy(io.Discard, p.r)
			return err
		}
		i, err := p.number(int64(max(p.count-1, 0)))
		if err != nil {
			return err
		}
		mode, err := p.number(0o777)
		if err != nil {
			return err
		}
		p.modes[int(i)] = uint32(mode)
	}
}

// Modes gives entries their modes: all that Next has returned, in that order, after its
// last one.
func (p *PackReader) Modes(entries []Entry) {
	for i := range entries {
		e := &entries[i]
		if mode := p.modes[i]; !e.Dir && (mode&0o111 != 0) == e.Exec {
			e.Mode = mode
		}
	}
}

// zeroChunk is the hash of a chunk of nothing but zeros.
var zeroChunk = sync.OnceValue(func() Hash { return HashOf(make([]byte, ChunkSize)) })

// chunks reads the bytes of a file. What is in no record is zero.
func (p *PackReader) chunks(e *Entry, put Putter) error {
	if err := p.advance(); err != nil {
		return err
	}
	var buf []byte
	zero := false // zeroChunk was put
	for i := range chunkCount(e.Size) {
		n, begin := chunkLen(e.Size, i), int64(i)*ChunkSize
		if n == ChunkSize && zero && (p.left == 0 || p.at >= begin+ChunkSize) {
			e.Chunks = append(e.Chunks, zeroChunk())
			continue
		}
		if buf == nil {
			buf = make([]byte, n)
		}
		buf = buf[:n]
		clear(buf)
		for p.left > 0 && p.at < begin+int64(n) {
			part := buf[p.at-begin : min(p.at-begin+p.left, int64(n))]
			if _, err := io.ReadFull(p.r, part); err != nil {
				return err
			}
			p.at, p.left = p.at+int64(len(part)), p.left-int64(len(part))
			if p.left == 0 {
				if err := p.advance(); err != nil {
					return err
				}
			}
		}
		h := zeroChunk()
		if n < ChunkSize || !isZero(buf) {
			h = HashOf(buf)
		} else {
			zero = true
		}
		e.Chunks = append(e.Chunks, h)
		if err := PutVerified(put, h, buf); err != nil {
			return err
		}
	}
	return nil
}

// advance finds the next bytes of the file that are not in a hole.
func (p *PackReader) advance() error {
	for p.left == 0 {
		next, err := p.r.Peek(1)
		if err == io.EOF || err == nil && next[0] != packData {
			return nil
		}
		if err != nil {
			return err
		}
		_, _ = p.r.Discard(1)
		at, err := p.number(p.file.Size)
		if err != nil {
			return err
		}
		if at < p.at {
			return fmt.Errorf("%w: %.100q goes back", ErrPack, p.file.Path)
		}
		p.at = at
		if p.left, err = p.number(p.file.Size - at); err != nil {
			return err
		}
	}
	return nil
}

func isZero(b []byte) bool {
	return len(b) == 0 || b[0] == 0 && bytes.Equal(b[1:], b[:len(b)-1])
}

// number reads a number that is at most so large.
func (p *PackReader) number(most int64) (int64, error) {
	n, err := binary.ReadUvarint(p.r)
	if err == nil && n > uint64(most) {
		err = fmt.Errorf("%w: %d where at most %d is right", ErrPack, n, most)
	}
	if err != nil {
		return 0, err
	}
	return int64(n), nil
}

func cutShort(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: it is cut short", ErrPack)
	}
	return err
}
