package mpi

import (
	"bytes"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"zorilla/internal/needs"
)

// link builds a file with the C compiler.
func link(t *testing.T, dir, name, source string, args ...string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	args = append([]string{"-nostdlib", "-Wl,--no-as-needed", "-x", "c", "-", "-x", "none", "-o", path}, args...)
	needs.Programs(t, "gcc")
	cmd := exec.CommandContext(t.Context(), "gcc", args...)
	cmd.Stdin = strings.NewReader(source)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("gcc %q: %v\n%s", args, err, out)
	}
	return path
}

// Which MPI is found by names, through other libraries, and where files say that
// their libraries are; and what is said of those that cannot be served.
func TestDetect(t *testing.T) {
	dir := t.TempDir()
	lib := func(name, source string, args ...string) string {
		return link(t, dir, name, source, append([]string{"-shared", "-Wl,-soname," + filepath.Base(name)}, args...)...)
	}
	const begin, ompi = "void _start(void) {}", `const char ompi_version_string[] = "%";`
	origin := "-Wl,--enable-new-dtags,-rpath,$ORIGIN/"
	five := lib("five/libmpi.so.40", strings.Replace(ompi, "%", "5.0.7", 1))
	lib("four/openmpi/mca_pmix_flux.so", "")
	four := lib("four/libmpi.so.40", strings.Replace(ompi, "%", "4.1.6", 1))
	pal := lib("whole/libopen-pal.so.40", "int mca_pmix_flux_component;")
	whole := lib("whole/libmpi.so.40", strings.Replace(ompi, "%", "4.0\033x", 1), pal, origin+".")
	mpich := lib("mpich/libmpich.so.12", `const char MPII_Version_string[] = "4.2.1";`)
	cray := lib("cray/libmpi.so.12", "")
	outer := lib("outer/libphysics.so.1", "", five, "-Wl,--disable-new-dtags,-rpath,"+dir+"/nowhere:$ORIGIN/../five")

	for name, test := range map[string]struct {
		args   []string
		dirs   []string
		want   Found
		refuse string
	}{
		"open mpi 5":     {args: []string{five, origin + "five"}, want: Found{Kind: OpenMPI, Library: five, Version: "5.0.7"}, refuse: "open mpi 5.0.7 cannot be served: it has no component flux, which open mpi 3 and 4 can have: start it with --launcher mpirun"},
		"open mpi 4":     {args: []string{four, origin + "four"}, want: Found{Kind: OpenMPI, Library: four, Version: "4.1.6", flux: true}},
		"within":         {args: []string{whole, origin + "whole", "-Wl,-rpath-link," + dir + "/whole"}, want: Found{Kind: OpenMPI, Library: whole, flux: true}},
		"mpich":          {args: []string{mpich, origin + "mpich"}, want: Found{Kind: MPICH, Library: mpich, Version: "4.2.1"}},
		"its relative":   {args: []string{cray}, dirs: []string{"relative", filepath.Dir(cray)}, want: Found{Kind: MPICH, Library: cray}},
		"behind another": {args: []string{outer, origin + "outer", "-Wl,-rpath-link," + dir + "/five"}, want: Found{Kind: OpenMPI, Library: five, Version: "5.0.7"}, refuse: "open mpi 5"},
		"not here":       {args: []string{lib("gone/libmpi.so.99", "")}, want: Found{Kind: OpenMPI}},
		"none":           {},
		"mpirun":         {want: Found{launcher: "mpirun"}, refuse: "mpirun would start ranks of its own in each rank: leave it out, or start it with --launcher mpirun"},
		"static":         {args: []string{"-static"}},
	} {
		t.Run(name, func(t *testing.T) {
			program := link(t, t.TempDir(), "program", begin, test.args...)
			// The programs of the table lie beside the libraries that they name.
			at := filepath.Join(dir, "program")
			if test.want.launcher != "" {
				at = filepath.Join(dir, test.want.launcher+".some")
			}
			if err := os.Rename(program, at); err != nil {
				t.Fatal(err)
			}
			got, err := Detect(OpenFile, at, test.dirs...)
			if err != nil || got != test.want {
				t.Errorf("found %+v, %v, want %+v", got, err, test.want)
			}
			err = got.Served()
			if (err != nil) != (test.refuse != "") || err != nil && !strings.HasPrefix(err.Error(), test.refuse) {
				t.Errorf("served: %v, want %q", err, test.refuse)
			}
		})
	}
}

// What cannot be a program for this is none, and devices are not opened.
func TestDetectOthers(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "mpirun")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n./mpiprog\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if f, err := Detect(OpenFile, script); err != nil || f != (Found{}) || f.Served() != nil {
		t.Errorf("script: %+v, %v", f, err)
	}
	for _, path := range []string{dir, "/dev/zero", filepath.Join(dir, "missing")} {
		if f, err := Detect(OpenFile, path); err == nil {
			t.Errorf("%s: %+v", path, f)
		}
	}
	// Programs of other machines are not run here, but are told apart.
	for what, change := range map[string]func(b []byte){
		"32 bits": func(b []byte) { b[4] = 1 },
		"sparc":   func(b []byte) { binary.LittleEndian.PutUint16(b[18:], 2) },
	} {
		b := bytes.Clone(elfNeeding(40))
		change(b)
		f := Found{Kind: OpenMPI}
		o := parseObject("p", bytes.NewReader(b))
		if what == "32 bits" {
			o = &object{class: 1}
		}
		f.look(&loader{open: OpenFile, program: o}, nil)
		if err := f.Served(); err == nil || !strings.HasPrefix(err.Error(), "open mpi cannot be served for programs of "+what+" on "+runtime.GOARCH) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// elfNeeding is a small program for amd64 with one name in its dynamic section, which
// it names many times, to begin with.
func elfNeeding(times int) []byte {
	var b bytes.Buffer
	le := func(values ...any) {
		for _, v := range values {
			binary.Write(&b, binary.LittleEndian, v)
		}
	}
	le([]byte("\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00"), uint16(3), uint16(62), uint32(1), uint64(0), uint64(64), uint64(0),
		uint32(0), uint16(64), uint16(56), uint16(2), uint16(0), uint16(0), uint16(0))
	size := uint64(64 + 2*56 + (times+2)*16)
	le(uint32(1), uint32(4), uint64(0), uint64(0), uint64(0), size+16, size+16, uint64(4096))
	le(uint32(2), uint32(4), uint64(64+2*56), uint64(64+2*56), uint64(0), uint64((times+2)*16), uint64(0), uint64(8))
	le(uint64(5), size)
	for range times {
		le(uint64(1), uint64(0))
	}
	le(uint64(0), uint64(0))
	b.WriteString("libmpi.so.40\x00\x00\x00\x00")
	return b.Bytes()
}

// A file that names more than any does is not believed.
func TestDetectIsBounded(t *testing.T) {
	if o := parseObject("p", bytes.NewReader(elfNeeding(100))); o == nil || len(o.needed) != 100 || o.needed[0] != "libmpi.so.40" {
		t.Fatalf("the file of this test is broken: %+v", o)
	}
	if o := parseObject("p", bytes.NewReader(elfNeeding(3*maxTags))); len(o.needed) > maxTexts/12 {
		t.Errorf("it believes %d names", len(o.needed))
	}
	// Libraries of no kind that is looked for, each of which is looked for everywhere.
	dir := t.TempDir()
	b := bytes.Replace(elfNeeding(1), []byte("libmpi"), []byte("libfoo"), 1)
	path := filepath.Join(dir, "p")
	if err := os.WriteFile(path, b, 0o755); err != nil {
		t.Fatal(err)
	}
	o, err := readObject(OpenFile, path)
	if err != nil {
		t.Fatal(err)
	}
	l := loader{open: OpenFile, program: o, opens: 3}
	if f := l.mpi(); f != (Found{}) || l.opens > 0 {
		t.Errorf("%+v, and %d may be opened", f, l.opens)
	}
}

// The system's own cache is read as ldconfig shows it.
func TestCache(t *testing.T) {
	b, err := os.ReadFile(cacheFile)
	if err != nil {
		t.Fatal(err) // ldconfig makes it
	}
	paths := parseCache(b)["libc.so.6"]
	if len(paths) == 0 {
		t.Fatalf("no libc.so.6 in %d bytes", len(b))
	}
	for _, path := range paths {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
	for n := range 200 {
		parseCache(b[:n])
	}
}

func FuzzDetect(f *testing.F) {
	f.Add(elfNeeding(3))
	f.Add(finish)
	f.Add([]byte("#!/bin/sh"))
	f.Fuzz(func(t *testing.T, b []byte) {
		o := parseObject("p", bytes.NewReader(b))
		if o == nil {
			return
		}
		n := 0
		for _, list := range [][]string{o.needed, o.rpath, o.runpath} {
			for _, s := range list {
				n += len(s)
			}
		}
		if n > 3*maxTexts {
			t.Errorf("%d bytes of names", n)
		}
		o.symbol("ucp_worker_create")
	})
}

func FuzzCache(f *testing.F) {
	f.Add(append([]byte("glibc-ld.so.cache1.1\x01"), make([]byte, 100)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		for name, paths := range parseCache(b) {
			if name == "" || len(paths) == 0 || len(paths) > 8 {
				t.Errorf("%q: %q", name, paths)
			}
		}
	})
}
