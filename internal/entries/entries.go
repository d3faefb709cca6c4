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
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

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
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	end, err := endOf(f)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	dir := make(chan error, 1)
	if durable {
		go func() { dir <- atomicfile.SyncDir(path) }()
	} else {
		dir <- nil
	}
	if _, err = f.Write(appendEntry(nil, name, value)); err != nil {
		_ = f.Truncate(end)
	} else if durable {
		err = f.Sync()
	}
	return errors.Join(err, f.Close(), <-dir)
}

// endOf returns where the next entry goes, and removes what was cut off there.
func endOf(f *os.File) (int64, error) {
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return 0, err
	}
	var b [head]byte
	for at := int64(0); ; {
		_, err := f.ReadAt(b[:], at)
		n := binary.BigEndian.Uint32(b[:])
		switch {
		case err != nil && !errors.Is(err, io.EOF):
			return 0, err
		case err == nil && binary.BigEndian.Uint32(b[4:]) != ^n:
			return 0, fmt.Errorf("%s: %w: it is damaged", f.Name(), codec.ErrMalformed)
		case err == nil && at+head+int64(n) <= info.Size():
			at += head + int64(n)
		case at < info.Size():
			return at, f.Truncate(at)
		default:
			return at, nil
		}
	}
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
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > limit {
		return nil, fmt.Errorf("%s: %w: want a file of at most %d bytes", path, fs.ErrInvalid, limit)
	}
	b, err := os.ReadFile(path)
	if err != nil {
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
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	nobody := strings.Repeat("-", len(name))
	_, err = scan(b, func(at int, its string, value []byte) error {
		if its != name {
			return nil
		}
		_, err := f.WriteAt(appendEntry(nil, nobody, value), int64(at))
		return err
	})
	return errors.Join(err, f.Close())
}
