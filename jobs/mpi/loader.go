package mpi

import (
	"bytes"
	"encoding/binary"
	"io"
	"path/filepath"
	"strings"
)

// loader finds libraries as the dynamic loader of the system would.
type loader struct {
	open    Open
	dirs    []string // of LD_LIBRARY_PATH
	program *object
	opens   int // files that may still be looked for
	cache   map[string][]string
}

// usual are the directories of the system, where there is no cache of what they have.
var usual = []string{
	"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu", "/usr/lib/aarch64-linux-gnu",
	"/lib64", "/usr/lib64", "/lib", "/usr/lib", "/usr/local/lib",
}

const (
	cacheFile = "/etc/ld.so.cache"
	maxCache  = 16 << 20 // bytes of it
	maxDirs   = 64       // directories where one file wants its libraries looked for
)

// find returns a library that an object needs, of the program's own kind of machine,
// or nil.
func (l *loader) find(by *object, name string) *object {
	if strings.Contains(name, "/") {
		return l.load(l.expand(by, name))
	}
	var dirs []string
	if len(by.runpath) == 0 {
		dirs = append(l.directories(by, by.rpath), l.directories(l.program, l.program.rpath)...)
	}
	dirs = append(dirs, l.dirs[:min(len(l.dirs), maxDirs)]...)
	dirs = append(dirs, l.directories(by, by.runpath)...)
	for _, dir := range dirs {
		if o := l.load(filepath.Join(dir, name)); o != nil {
			return o
		}
	}
	if l.cache == nil {
		l.cache = readCache(l.open, cacheFile)
	}
	for _, path := range l.cache[name] {
		if o := l.load(path); o != nil {
			return o
		}
	}
	for _, dir := range usual {
		if o := l.load(filepath.Join(dir, name)); o != nil {
			return o
		}
	}
	return nil
}

// directories are those of a search path of a file.
func (l *loader) directories(o *object, paths []string) (dirs []string) {
	for _, path := range paths {
		for dir := range strings.SplitSeq(path, ":") {
			if len(dirs) == maxDirs {
				return dirs
			}
			if dir = l.expand(o, dir); filepath.IsAbs(dir) {
				dirs = append(dirs, dir)
			}
		}
	}
	return dirs
}

// expand puts the directory of a file where it names that.
func (l *loader) expand(o *object, path string) string {
	return strings.NewReplacer("$ORIGIN", filepath.Dir(o.path), "${ORIGIN}", filepath.Dir(o.path)).Replace(path)
}

// exists reports whether there is such a file, which can be read.
func (l *loader) exists(path string) bool {
	if l.opens--; l.opens < 0 {
		return false
	}
	f, err := l.open(path)
	if err != nil {
		return false
	}
	return f.Close() == nil
}

// load reads a library, if it is one that the program can load.
func (l *loader) load(path string) *object {
	if l.opens--; l.opens < 0 || !filepath.IsAbs(path) {
		return nil
	}
	o, err := readObject(l.open, path)
	if err != nil || o == nil || o.class != l.program.class || o.machine != l.program.machine {
		return nil
	}
	return o
}

// readCache reads what the system's loader knows of libraries: their paths by name. A
// cache that is missing, or of another format, has none.
func readCache(open Open, path string) map[string][]string {
	paths := map[string][]string{}
	f, err := open(path)
	if err != nil {
		return paths
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxCache))
	if err != nil {
		return paths
	}
	return parseCache(b)
}

// parseCache knows the format of glibc 2.2 and later: a header of 48 bytes, entries of
// 24, of which the second and third number are where the name and the path are.
func parseCache(b []byte) map[string][]string {
	const magic, header, entry = "glibc-ld.so.cache1.1", 48, 24
	paths := map[string][]string{}
	start := bytes.Index(b, []byte(magic)) // older ones have an older cache before it
	if start < 0 || len(b)-start < header {
		return paths
	}
	b = b[start:]
	text := func(at uint32) string {
		if uint64(at) >= uint64(len(b)) {
			return ""
		}
		rest := b[at:]
		s, _, ok := bytes.Cut(rest[:min(len(rest), maxString)], []byte{0})
		if !ok {
			return ""
		}
		return string(s)
	}
	n := min(uint64(binary.NativeEndian.Uint32(b[len(magic):])), uint64(len(b)-header)/entry)
	for i := range n {
		e := b[header+entry*i:]
		name, path := text(binary.NativeEndian.Uint32(e[4:])), text(binary.NativeEndian.Uint32(e[8:]))
		if name != "" && filepath.IsAbs(path) && len(paths[name]) < 8 {
			paths[name] = append(paths[name], path)
		}
	}
	return paths
}
