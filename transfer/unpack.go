package transfer

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
)

// ErrPack is wrapped by the errors about packs that are none.
var ErrPack = errors.New("not a pack of files")

// PackReader reads what Pack.Write wrote, and trusts none of it.
type PackReader struct {
	r    *bufio.Reader
	file Entry // that was told last
	due  bool  // its bytes, if it has any, follow
	at   int64 // of the bytes that come next
	left int64 // how many do, before the next record

	count int            // entries so far
	modes map[int]uint32 // of some of them; known at the end
}

// NewPackReader returns a reader of one pack, which ends where r does.
func NewPackReader(r io.Reader) *PackReader { return &PackReader{r: bufio.NewReader(r)} }

// Next puts the chunks of the next file and returns its entry, as Head and Chunks do.
func (p *PackReader) Next(put Putter) (Entry, error) {
	if _, err := p.Head(); err != nil {
		return Entry{}, err
	}
	return p.Chunks(put)
}

// Chunks puts the chunks of the file that Head told last, and returns its entry with them.
func (p *PackReader) Chunks(put Putter) (Entry, error) {
	if !p.due {
		return p.file, nil
	}
	p.due = false
	err := p.chunks(&p.file, put)
	return p.file, cutShort(err)
}

// Head returns the entry of the next file without its chunks, or that of an empty directory.
// Who wants the file calls Chunks, else its bytes are passed over. Head returns io.EOF at the
// end; then Modes knows more.
func (p *PackReader) Head() (Entry, error) {
	if err := p.passOver(); err != nil {
		return Entry{}, cutShort(err)
	}
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
		p.file = e
		return e, nil
	}
	exec, err := p.number(1)
	if err == nil {
		e.Exec = exec == 1
		e.Size, err = p.number(maxFile)
	}
	if err != nil {
		return Entry{}, cutShort(err)
	}
	p.file, p.due, p.at, p.left = e, true, 0, 0
	return e, nil
}

// passOver reads the bytes of a file that nobody wanted.
func (p *PackReader) passOver() error {
	for p.due {
		if err := p.advance(); err != nil {
			return err
		}
		n, err := io.CopyN(io.Discard, p.r, p.left)
		if err != nil {
			return err
		}
		p.at, p.left, p.due = p.at+n, 0, n > 0
	}
	return nil
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
		if err := putVerified(put, h, buf); err != nil {
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
