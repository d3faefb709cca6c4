package mpi

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// object is an ELF file, as the dynamic loader sees it: by its program headers, not by
// its sections, which may be missing. Of whatever it says only a bounded part is read.
type object struct {
	path    string
	real    string // the path without links; "" = not told
	open    Open
	class   elf.Class
	machine elf.Machine
	needed  []string
	rpath   []string // directories
	runpath []string
	file    io.ReaderAt // only while it is read
	order   binary.ByteOrder
	progs   []elf.Prog64
	dynamic map[elf.DynTag]uint64
}

const (
	maxProgs  = 256
	maxTags   = 4096
	maxString = 4096
	maxTexts  = 16 << 10 // bytes of what one file names: libraries, or directories
	maxChain  = 1 << 12  // names of one hash
)

// Open opens a file for Detect, or says that the program could not.
type Open func(path string) (*os.File, error)

// OpenFile opens an ordinary file; devices and pipes are not even opened.
func OpenFile(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("not a file")
	}
	if err != nil {
		return nil, err
	}
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
}

// readObject reads a file; nil is no error, but no ELF file that anything could load.
func readObject(open Open, path string) (*object, error) {
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	o := parseObject(path, f)
	if o != nil {
		o.file, o.open = nil, open
		o.real, _ = os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	}
	return o, nil
}

func parseObject(path string, file io.ReaderAt) *object {
	o := &object{path: path, file: file, dynamic: map[elf.DynTag]uint64{}}
	if !o.header() {
		return nil
	}
	o.tags()
	return o
}

// at reads n bytes of the file, or as many as there are.
func (o *object) at(offset uint64, n int) []byte {
	if offset > 1<<62 {
		return nil
	}
	b := make([]byte, n)
	k, _ := o.file.ReadAt(b, int64(offset))
	return b[:k]
}

// decode reads a value of fixed size from the file.
func (o *object) decode(offset uint64, v any) bool {
	b := o.at(offset, binary.Size(v))
	return binary.Read(bytes.NewReader(b), o.order, v) == nil
}

func (o *object) header() bool {
	id := o.at(0, elf.EI_NIDENT)
	if len(id) < elf.EI_NIDENT || string(id[:4]) != elf.ELFMAG {
		return false
	}
	o.class = elf.Class(id[elf.EI_CLASS])
	switch elf.Data(id[elf.EI_DATA]) {
	case elf.ELFDATA2LSB:
		o.order = binary.LittleEndian
	case elf.ELFDATA2MSB:
		o.order = binary.BigEndian
	default:
		return false
	}
	switch o.class {
	case elf.ELFCLASS64:
		var h elf.Header64
		if !o.decode(0, &h) || h.Phnum > maxProgs || uint64(h.Phoff) > 1<<62 {
			return false
		}
		o.machine, o.progs = elf.Machine(h.Machine), make([]elf.Prog64, h.Phnum)
		return o.decode(h.Phoff, o.progs)
	case elf.ELFCLASS32:
		var h elf.Header32
		if !o.decode(0, &h) || h.Phnum > maxProgs {
			return false
		}
		progs := make([]elf.Prog32, h.Phnum)
		if !o.decode(uint64(h.Phoff), progs) {
			return false
		}
		o.machine = elf.Machine(h.Machine)
		for _, p := range progs {
			o.progs = append(o.progs, elf.Prog64{Type: p.Type, Off: uint64(p.Off), Vaddr: uint64(p.Vaddr), Filesz: uint64(p.Filesz)})
		}
		return true
	}
	return false
}

// offset is where the file has what is at an address in memory.
func (o *object) offset(address uint64) (uint64, bool) {
	for _, p := range o.progs {
		if elf.ProgType(p.Type) == elf.PT_LOAD && address >= p.Vaddr && address-p.Vaddr < p.Filesz {
			return p.Off + (address - p.Vaddr), p.Off < 1<<61 && address-p.Vaddr < 1<<61
		}
	}
	return 0, false
}

// tags reads the dynamic section. A static program has none.
func (o *object) tags() {
	var needed, rpath, runpath []uint64
	for _, p := range o.progs {
		if elf.ProgType(p.Type) != elf.PT_DYNAMIC {
			continue
		}
		size := o.word()
		b := o.at(p.Off, int(min(p.Filesz, maxTags*2*uint64(size))))
		for i := 0; i+2*size <= len(b); i += 2 * size {
			tag, value := elf.DynTag(o.number(b[i:])), o.number(b[i+size:])
			if tag == elf.DT_NULL {
				break
			}
			switch tag {
			case elf.DT_NEEDED:
				needed = append(needed, value)
			case elf.DT_RPATH:
				rpath = append(rpath, value)
			case elf.DT_RUNPATH:
				runpath = append(runpath, value)
			default:
				o.dynamic[tag] = value
			}
		}
		break
	}
	o.needed = o.strings(needed)
	o.rpath, o.runpath = o.strings(rpath), o.strings(runpath)
}

// word is the size of an address.
func (o *object) word() int {
	if o.class == elf.ELFCLASS64 {
		return 8
	}
	return 4
}

func (o *object) number(b []byte) uint64 {
	if o.class == elf.ELFCLASS64 {
		return o.order.Uint64(b)
	}
	return uint64(o.order.Uint32(b))
}

// strings are those of the string table at some places of it.
func (o *object) strings(at []uint64) (list []string) {
	left := maxTexts
	for _, n := range at {
		s, ok := o.str(n)
		if left -= len(s) + 1; !ok { // it was looked for to the end
			left -= maxString
		}
		if left < 0 {
			break
		}
		if ok && s != "" {
			list = append(list, s)
		}
	}
	return list
}

// str is one text of the string table, which ends with a zero byte.
func (o *object) str(n uint64) (string, bool) {
	table, ok := o.dynamic[elf.DT_STRTAB]
	if !ok || n > 1<<40 {
		return "", false
	}
	offset, ok := o.offset(table + n)
	if !ok {
		return "", false
	}
	return o.textAt(offset)
}

func (o *object) textAt(offset uint64) (string, bool) {
	for _, size := range []int{64, maxString} {
		if text, _, ok := bytes.Cut(o.at(offset, size), []byte{0}); ok {
			return string(text), true
		}
	}
	return "", false
}

// reopened calls f while the file is open again, if it still is one.
func (o *object) reopened(f func()) {
	file, err := o.open(o.path)
	if err != nil {
		return
	}
	defer file.Close()
	o.file = file
	defer func() { o.file = nil }()
	f()
}

// defines reports whether others can use a name that the file has.
func (o *object) defines(name string) (yes bool) {
	o.reopened(func() { _, yes = o.symbol(name) })
	return yes
}

// text is what is at a name that the file has: a text, or "".
func (o *object) text(name string) (text string) {
	o.reopened(func() {
		address, ok := o.symbol(name)
		if !ok {
			return
		}
		if offset, ok := o.offset(address); ok {
			text, _ = o.textAt(offset)
		}
	})
	return text
}

// symbol looks a name up as the dynamic loader does, by GNU's table of hashes: only
// libraries of 64 bits, since no others are asked.
func (o *object) symbol(name string) (address uint64, ok bool) {
	if o.class != elf.ELFCLASS64 {
		return 0, false
	}
	table, ok1 := o.offset(o.dynamic[elf.DT_GNU_HASH])
	symbols, ok2 := o.offset(o.dynamic[elf.DT_SYMTAB])
	var h struct{ Buckets, First, Bloom, Shift uint32 }
	if !ok1 || !ok2 || !o.decode(table, &h) || h.Buckets == 0 {
		return 0, false
	}
	hash := uint32(5381)
	for _, c := range []byte(name) {
		hash = hash*33 + uint32(c)
	}
	buckets := table + 16 + 8*uint64(h.Bloom)
	chains := buckets + 4*uint64(h.Buckets)
	var at, link uint32
	if !o.decode(buckets+4*uint64(hash%h.Buckets), &at) || at < h.First {
		return 0, false
	}
	for range maxChain {
		if !o.decode(chains+4*uint64(at-h.First), &link) {
			return 0, false
		}
		if link|1 == hash|1 {
			var s elf.Sym64
			if !o.decode(symbols+elf.Sym64Size*uint64(at), &s) {
				return 0, false
			}
			if have, ok := o.str(uint64(s.Name)); ok && have == name && elf.SectionIndex(s.Shndx) != elf.SHN_UNDEF {
				return s.Value, true
			}
		}
		if link&1 == 1 {
			break
		}
		at++
	}
	return 0, false
}
