package transfer_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"zorilla/transfer"
)

// pack gathers files and returns them as they travel.
func pack(t testing.TB, dir string, skip *transfer.Manifest, globs ...string) ([]byte, []string) {
	t.Helper()
	p, warnings, err := transfer.Gather(t.Context(), dir, globs, skip)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	var b bytes.Buffer
	if err := p.Write(bufio.NewWriter(&b)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), warnings
}

// unpack writes what travelled, and returns the entries' names.
func unpack(t testing.TB, b []byte, dir string) (names []string, err error) {
	t.Helper()
	heap, err := transfer.NewHeap(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer heap.Close()
	var entries []transfer.Entry
	for r := transfer.NewPackReader(bytes.NewReader(b)); ; {
		e, err := r.Next(heap)
		if err == io.EOF {
			r.Modes(entries)
			break
		}
		if err != nil {
			return names, err
		}
		names = append(names, e.Path)
		entries = append(entries, e)
	}
	m, err := transfer.NewManifest(entries)
	if err != nil {
		t.Fatal(err)
	}
	return names, m.Write(t.Context(), heap, dir)
}

func TestPackBringsFiles(t *testing.T) {
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "to")
	large := strings.Repeat("0123456789abcdef", 200_000)
	write(t, from, map[string]string{"a": "one", "sub/b": large, "sub/none/": "", "empty": "", "left": "x"})
	err := errors.Join(os.Chmod(filepath.Join(from, "a"), 0o700), os.Chmod(filepath.Join(from, "sub/b"), 0o640), os.WriteFile(filepath.Join(from, "holes"), []byte("begin"), 0o644), os.Truncate(filepath.Join(from, "holes"), 1<<30))
	if err != nil {
		t.Fatal(err)
	}
	b, warnings := pack(t, from, nil, "a", "sub", "empty", "holes", "not")
	if len(b) > len(large)+1<<20 {
		t.Errorf("%d bytes travel, of which %d are no holes", len(b), len(large))
	}
	if want := []string{`output pattern "not" matches nothing`}; !slices.Equal(warnings, want) {
		t.Errorf("warnings %q, want %q", warnings, want)
	}
	names, err := unpack(t, b, to)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	if want := []string{"a", "empty", "holes", "sub/b", "sub/none"}; !slices.Equal(names, want) {
		t.Errorf("got %q, want %q", names, want)
	}
	for name, want := range map[string]string{"a": "one", "sub/b": large, "empty": ""} {
		if got, err := os.ReadFile(filepath.Join(to, name)); err != nil || string(got) != want {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
	for name, want := range map[string]os.FileMode{"a": 0o700, "sub/b": 0o640, "empty": 0o644, "holes": 0o644} {
		if info, err := os.Stat(filepath.Join(to, name)); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v, want %v", name, info.Mode(), err, want)
		}
	}
	info, err := os.Stat(filepath.Join(to, "holes"))
	if err != nil || info.Size() != 1<<30 || info.Sys().(*syscall.Stat_t).Blocks > 1<<12 {
		t.Errorf("holes: %v, %v", info, err)
	}
}

func TestPackLeavesOutWhatWasMade(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"in": "->../work/in", "other": "->../work/other", "d/x": "->../../work/d/x", "e/": "", "f/": "", "f/new": "n", "evil": "->/etc/passwd"})
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	made := transfer.Manifest{Entries: []transfer.Entry{{Path: "d", Dir: true}, {Path: "d/x", Link: "../../work/d/x"}, {Path: "e", Dir: true}, {Path: "f", Dir: true},
		{Path: "in", Link: "../work/in"}, {Path: "other", Link: "../work/another"}}}
	b, warnings := pack(t, dir, &made, "*")
	names, err := unpack(t, b, t.TempDir())
	if want := []string{"f/new"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("got %q, %v, want %q", names, err, want)
	}
	for i, name := range []string{`"evil" is a symbolic link`, `"other" is a symbolic link`, `"pipe" is a named pipe`} {
		if len(warnings) != 3 || !strings.Contains(warnings[i], name) {
			t.Errorf("warnings %q, want one with %s", warnings, name)
		}
	}
}

// A pack of before knows of no modes, and who reads one of today may know of none. What
// comes later is passed over.
func TestModesOfPacks(t *testing.T) {
	const one, two = "f\x01a\x00\x00", "f\x01b\x01\x00"
	for tail, want := range map[string]string{
		"": "0 0", "m\x00\x80\x03": "600 0", "m\x01\xc0\x03m\x00\xa0\x03": "640 700", "m\x00\x80\x03n what is this": "600 0",
		"m\x00\xc0\x03": "0 0", // who may run it is part of the record
	} {
		r := transfer.NewPackReader(strings.NewReader(one + two + "e" + tail))
		var entries []transfer.Entry
		for {
			e, err := r.Next(nil)
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			entries = append(entries, e)
		}
		r.Modes(entries)
		if got := fmt.Sprintf("%o %o", entries[0].Mode, entries[1].Mode); got != want {
			t.Errorf("%q: got %s, want %s", tail, got, want)
		}
	}
}

// Files are told of before their bytes come, which are passed over unless somebody wants them.
func TestHeadsOfPacks(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"b": "wanted", "c/": "", "d": "", "e": "last"})
	large, err := os.Create(filepath.Join(dir, "a"))
	if err != nil {
		t.Fatal(err)
	}
	defer large.Close()
	for _, at := range []int64{0, 1 << 29, 1<<30 - 5} { // with holes
		if _, err := large.WriteAt([]byte("large"), at); err != nil {
			t.Fatal(err)
		}
	}
	b, _ := pack(t, dir, nil, "*")
	r := transfer.NewPackReader(bytes.NewReader(b))
	var got []string
	for {
		e, err := r.Head()
		if err == io.EOF {
			break
		}
		if err != nil || len(e.Chunks) > 0 {
			t.Fatalf("%+v, %v", e, err)
		}
		text := ""
		if e.Path != "a" {
			for range 2 { // the second time there is no more
				whole, err := r.Chunks(transfer.PutterFunc(func(_ transfer.Hash, data []byte) error { text += string(data); return nil }))
				if err != nil || whole.Path != e.Path || whole.Size != e.Size {
					t.Fatalf("%+v, %v", whole, err)
				}
			}
		}
		got = append(got, fmt.Sprintf("%s %d %s", e.Path, e.Size, text))
	}
	slices.Sort(got)
	if want := []string{"a 1073741824 ", "b 6 wanted", "c 0 ", "d 0 ", "e 4 last"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for i := range b[:60] {
		r := transfer.NewPackReader(bytes.NewReader(b[:i]))
		for err := error(nil); ; {
			if _, err = r.Head(); err != nil {
				if !errors.Is(err, transfer.ErrPack) {
					t.Errorf("cut at %d: %v", i, err)
				}
				break
			}
		}
	}
}

func TestPacksThatAreNone(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"a/b": "some bytes", "c": "more"})
	good, _ := pack(t, dir, nil, "*")
	for i := range good {
		if _, err := unpack(t, good[:i], t.TempDir()); !errors.Is(err, transfer.ErrPack) {
			t.Errorf("cut at %d: %v", i, err)
		}
	}
	for name, b := range map[string]string{
		"outside": "f\x04../x\x00\x00", "absolute": "f\x02/x\x00\x00", "unknown": "x", "bytes first": "b\x00\x01x", "too large": "f\x01x\x00\xff\xff\xff\xff\xff\xff\xff\x7f",
		"beyond the end": "f\x01x\x00\x02b\x01\x02ab", "back": "f\x01x\x00\x04b\x02\x01ab\x00\x01a", "mode": "f\x01x\x07\x00",
		"no such file": "f\x01x\x00\x00em\x01\x00", "no such mode": "f\x01x\x00\x00em\x00\x80\x08", "cut short": "f\x01x\x00\x00em\x00",
	} {
		if _, err := unpack(t, []byte(b), t.TempDir()); !errors.Is(err, transfer.ErrPack) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzPack(f *testing.F) {
	dir := f.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a"), []byte("some bytes"), 0o644); err != nil {
		f.Fatal(err)
	}
	b, _ := pack(f, dir, nil, "*")
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		r := transfer.NewPackReader(bytes.NewReader(b))
		for {
			e, err := r.Head()
			if err == nil && len(e.Path)%2 == 0 { // others are passed over
				e, err = r.Chunks(transfer.PutterFunc(func(transfer.Hash, []byte) error { return nil }))
			}
			if err != nil {
				return
			}
			if transfer.CheckPath(e.Path) != nil || e.Size < 0 {
				t.Fatalf("%+v", e)
			}
		}
	})
}
