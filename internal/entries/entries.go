// Package entries keeps named values in one file, for those that would cost a file
// each: to make a file costs many times what it costs to write into one.
//
// A value is appended; the latest of a name counts. A value that was cut off at the end
// of the file, when who wrote it was killed, is none. One process at a time may write;
// others may read meanwhile.
package entries

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"golang.org/x/sys/unix"

	"zorilla/internal/atomicfile"
	"zorilla/internal/codec"
)

// An entry: the length of the rest, the same with all bits inverted (4 bytes each, big
// endian), and sealed (codec.Seal), the length of the name, the name and the value.
const head = 8

// maxName bounds the length of a name.
const maxName = 32

func appendEntry(b []byte, name string, value []byte) []byte {
	body := make([]byte, 0, 1+len(name)+len(value))
	body = append(append(append(body, byte(len(name))), name...), value...)
	sealed := codec.Seal(body)
	b = binary.BigEndian.AppendUint32(b, uint32(len(sealed)))
	b = binary.BigEndian.AppendUint32(b, ^uint32(len(sealed)))
	return append(b, sealed...)
}

// Append adds a value to a file, which is made for the node's user alone if it is not
// there. What cannot be written whole is not written. The name has up to 32 bytes.
func Append(path, name string, value []byte) error { return add(path, name, value, false) }

// Sync is Append that returns when the value, all before it, and the file's own name are
// on the disk.
func Sync(path, name string, value []byte) error { return add(path, name, value, true) }

func add(path, name string, value []byte, durable bool) error {
	if name == "" || len(name) > maxName {
		return fmt.Errorf("%s: name %.40q of an entry: want up to %d bytes", path, name, maxName)
	}
	f, err := openRaw(path, unix.O_RDWR|unix.O_APPEND|unix.O_CREAT)
	if err != nil {
		return err
	}
	end, err := endOf(f)
	if err != nil {
		return errors.Join(err, f.close())
	}
	dir := make(chan error, 1)
	if durable {
		go func() { dir <- atomicfile.SyncDir(path) }()
	} else {
		dir <- nil
	}
	if err = f.append(appendEntry(nil, name, value)); err != nil {
		_ = f.truncate(end)
	} else if durable {
		err = f.sync()
	}
	return errors.Join(err, f.close(), <-dir)
}

// atOnce is how much of a file is read to find its end: all of most files.
const atOnce = 16 << 10

// endOf returns where the next entry goes, and removes what was cut off there.
func endOf(f *raw) (int64, error) {
	var part []byte // from an offset on
	from := int64(0)
	for at := int64(0); ; {
		if at+head > f.size {
			return at, f.cut(at)
		}
		if at+head > from+int64(len(part)) {
			part, from = make([]byte, min(f.size-at, atOnce)), at
			n, err := f.readAt(part, at)
			if err != nil {
				return 0, err
			}
			if part = part[:n]; n < head {
				return at, f.cut(at)
			}
		}
		b := part[at-from:]
		n := binary.BigEndian.Uint32(b)
		if binary.BigEndian.Uint32(b[4:]) != ^n {
			return 0, fmt.Errorf("%s: %w: it is damaged", f.path, codec.ErrMalformed)
		}
		if at+head+int64(n) > f.size {
			return at, f.cut(at)
		}
		at += head + int64(n)
	}
}

// cut removes what is beyond the last whole entry.
func (f *raw) cut(end int64) error {
	if end >= f.size {
		return nil
	}
	return f.truncate(end)
}

// A File is what a file held when it was read.
type File struct {
	path    string
	values  map[string][]byte
	first   string
	damaged bool
}

// Read reads a file of up to limit bytes. That of an entry a bit was flipped shows when
// a value is asked for.
func Read(path string, limit int64) (*File, error) {
	src, err := openRaw(path, unix.O_RDONLY)
	switch {
	case errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENXIO), errors.Is(err, fs.ErrInvalid): // a link, a socket, a pipe
		return nil, invalid(path, limit)
	case err != nil:
		return nil, err
	case src.size > limit:
		return nil, errors.Join(invalid(path, limit), src.close())
	}
	b, err := src.all()
	if err = errors.Join(err, src.close()); err != nil {
		return nil, err
	}
	f := &File{path: path, values: map[string][]byte{}}
	f.damaged, err = scan(b, func(at int, name string, value []byte) error {
		if at == 0 {
			f.first = name
		}
		f.values[name] = value
		return nil
	})
	return f, err
}

// scan goes through the entries in b, until one is damaged or cut off.
func scan(b []byte, f func(at int, name string, value []byte) error) (damaged bool, err error) {
	for at := 0; len(b)-at >= head && err == nil; {
		n := binary.BigEndian.Uint32(b[at:])
		if binary.BigEndian.Uint32(b[at+4:]) != ^n {
			return true, nil
		}
		rest := b[at+head:]
		if uint64(len(rest)) < uint64(n) {
			return false, nil
		}
		name, value, ok := open(rest[:n])
		if !ok {
			return true, nil
		}
		err = f(at, name, value)
		at += head + int(n)
	}
	return false, err
}

func open(sealed []byte) (name string, value []byte, ok bool) {
	b, err := codec.Unseal(sealed)
	if err != nil || len(b) < 1 || len(b) < 1+int(b[0]) {
		return "", nil, false
	}
	return string(b[1 : 1+b[0]]), b[1+b[0]:], true
}

// Get returns the latest value of a name. The error wraps fs.ErrNotExist if there is
// none, or codec.ErrMalformed if the file is damaged: then only its first value is
// known for certain, of another one the latest before the damage, nil if there is none.
func (f *File) Get(name string) ([]byte, error) {
	value, ok := f.values[name]
	switch {
	case f.damaged && (!ok || name != f.first):
		return value, fmt.Errorf("%s: %w: it is damaged", f.path, codec.ErrMalformed)
	case !ok:
		return nil, &fs.PathError{Op: "read entry " + name, Path: f.path, Err: fs.ErrNotExist}
	}
	return value, nil
}

// Keep leaves of a file the values of some names only, in one step: who reads it, or
// comes after a process that was killed, finds the old file or the new one.
func Keep(path string, limit int64, names ...string) error {
	f, err := Read(path, limit)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	for _, name := range names {
		if value, err := f.Get(name); err == nil {
			b.Write(appendEntry(nil, name, value))
		}
	}
	return atomicfile.How{Loose: true}.Write(path, b.Bytes())
}

// Drop takes the values of a name away, in place: it needs no room on the disk.
func Drop(path, name string) error {
	f, err := openRaw(path, unix.O_RDWR)
	if err != nil {
		return err
	}
	b, err := f.all()
	if err != nil {
		return errors.Join(err, f.close())
	}
	nobody := strings.Repeat("-", len(name))
	_, err = scan(b, func(at int, its string, value []byte) error {
		if its != name {
			return nil
		}
		return f.writeAt(appendEntry(nil, nobody, value), int64(at))
	})
	return errors.Join(err, f.close())
}
