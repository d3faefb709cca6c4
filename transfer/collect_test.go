package transfer_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"

	"zorilla/transfer"
)

func collect(t *testing.T, dir string, skip *transfer.Manifest, globs ...string) ([]string, []string) {
	t.Helper()
	s := transfer.NewMemStore(0)
	m, warnings, err := transfer.Collect(t.Context(), s, dir, globs, skip)
	if err != nil {
		t.Fatalf("%q: %v", globs, err)
	}
	for _, h := range m.Chunks() {
		if !s.Has(h) {
			t.Errorf("%q: a chunk was not put", globs)
		}
	}
	return entries(m), warnings
}

func TestCollectGlobs(t *testing.T) {
	dir := t.TempDir()
	files := map[string]string{
		"out-1": "1", "out-2*": "2", "out/a": "a", "out/b/c": "c", "out/empty/": "", "log.txt": "l", ".hidden": "h", "sub/out-3": "3", "void/": "", ".d/x": "x", ".d/out-4": "4",
	}
	write(t, dir, files)
	for globs, want := range map[string]string{
		"out-*":         "out-1 out-2*",
		"out-1 out-*":   "out-1 out-2*",
		"out":           "out/a out/b/c out/empty/",
		"./out/":        "out/a out/b/c out/empty/",
		"out*":          "out/a out/b/c out/empty/ out-1 out-2*",
		"out/b/*":       "out/b/c",
		"out/*":         "out/a out/b/c out/empty/",
		"*/out-?":       "sub/out-3",
		"[l-s]*/*-3":    "sub/out-3",
		"void":          "void/",
		"out/a out/b":   "out/a out/b/c",
		".":             "log.txt out/a out/b/c out/empty/ out-1 out-2* sub/out-3 void/",
		"*.txt .hidden": ".hidden log.txt",
		"**/*-3":        "sub/out-3",
		"**/out-?":      "out-1 out-2* sub/out-3",
		"out/**":        "out/a out/b/c out/empty/",
		"out/**/c":      "out/b/c",
		"**/**/b/**":    "out/b/c",
		"**":            "log.txt out/a out/b/c out/empty/ out-1 out-2* sub/out-3 void/",
		"**/b":          "out/b/c",
		"**/c":          "out/b/c",
		"*":             "log.txt out/a out/b/c out/empty/ out-1 out-2* sub/out-3 void/",
		".*":            ".d/out-4 .d/x .hidden",
		`\.h*`:          ".hidden",
		".d":            ".d/out-4 .d/x",
		".d/*4":         ".d/out-4",
		"**/.hid*":      ".hidden",
		"**/a out":      "out/a out/b/c out/empty/",
	} {
		got, warnings := collect(t, dir, nil, strings.Fields(globs)...)
		if !reflect.DeepEqual(got, strings.Fields(want)) || len(warnings) > 0 {
			t.Errorf("%s: got %q, warnings %q, want %s", globs, got, warnings, want)
		}
		for _, p := range got {
			if !transfer.MatchOutput(strings.Fields(globs), strings.TrimRight(p, "*/")) {
				t.Errorf("%s: MatchOutput does not take %s", globs, p)
			}
		}
	}
	for glob, p := range map[string]string{"out-*": ".bashrc", "*": ".bashrc", "?bashrc": ".bashrc", "[.]bashrc": ".bashrc", ".": ".bashrc", "**": "a/.ssh/rc", "**/rc": ".ssh/rc", "a/*": "a/.x", "*/rc": ".ssh/rc", "a*": "ab/.ssh/rc", "*/c": ".c/c", "out": "outside", "out/*": "out", "a/*/c": "a/b", "out/**": "out", "**/c": "b/d", "a/**/c": "b/c", "**/a/**": "b/a", "../*": "x", "[": "[", "": "x", "/": "x"} {
		if transfer.MatchOutput([]string{glob}, p) {
			t.Errorf("MatchOutput: %q takes %q", glob, p)
		}
	}
}

// What a directory has that is hidden comes if the directory was named; if a wildcard has found
// it a warning says that it does not.
func TestHiddenNamesInDirectories(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"a.zarr/.zarray": "m", "a.zarr/0.0": "d", "a.zarr/s/.deep": "x"})
	for glob, want := range map[string]string{"a.zarr": "a.zarr/.zarray a.zarr/0.0 a.zarr/s/.deep", "*.zarr": "a.zarr/0.0", "a.zarr/**/.*": "a.zarr/.zarray a.zarr/s/.deep"} {
		got, warnings := collect(t, dir, nil, glob)
		if strings.Join(got, " ") != want || (len(warnings) > 0) != (glob == "*.zarr") {
			t.Errorf("%s: %q, %q", glob, got, warnings)
		}
		for _, w := range warnings {
			if !strings.Contains(w, `: -o "a.zarr`) {
				t.Error(w)
			}
		}
	}
}

func TestCollectWarnings(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	write(t, outside, map[string]string{"secret": "s"})
	write(t, dir, map[string]string{
		"in": "input", "in.dir/": "", "mode": "m", "same/size": "abc", "ok": "ok", "new\nline": "x", "utf\xff": "x",
		"l": "->" + outside + "/secret", "ld": "->" + outside, "inner": "->ok",
	})
	skip, err := transfer.Ingest(t.Context(), transfer.NewMemStore(0), []transfer.Input{{Path: filepath.Join(dir, "in")}, {Path: filepath.Join(dir, "in.dir")}, {Path: filepath.Join(dir, "mode")}, {Path: filepath.Join(dir, "same"), Name: "same"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o644), os.Chmod(filepath.Join(dir, "mode"), 0o755), os.WriteFile(filepath.Join(dir, "same/size"), []byte("xyz"), 0o644)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ globs, want, warnings string }{
		{"*", "mode* ok same/size", `"inner" is a symbolic link|"l" is a symbolic link|"ld" is a symbolic link|left out: path holds a control|"pipe" is a named pipe|left out: path is not valid`},
		{"nothing*", "", `"nothing*" matches nothing`},
		{"in", "", `"in" matches only unchanged inputs`},
		{"in mode", "mode*", `"in" matches only unchanged inputs`},
		{"in* mode", "mode*", `"in*" matches only unchanged inputs|"inner" is a symbolic link`},
		{"ld/secret", "", `"ld/secret" matches nothing`},
		{"ok/x", "", `"ok/x" matches nothing`},
		{"l ok", "ok", `"l" is a symbolic link`},
	} {
		got, warnings := collect(t, dir, &skip, strings.Fields(c.globs)...)
		if !reflect.DeepEqual(got, strings.Fields(c.want)) {
			t.Errorf("%s: got %q, want %s", c.globs, got, c.want)
		}
		all := strings.Join(warnings, "\n")
		want := strings.Split(c.warnings, "|")
		for _, w := range want {
			if !strings.Contains(all, w) {
				t.Errorf("%s: no warning %q in\n%s", c.globs, w, all)
			}
		}
		if len(warnings) != len(want) || strings.Count(all, "\n") != len(want)-1 {
			t.Errorf("%s: warnings %q, want %q", c.globs, warnings, want)
		}
	}
}

func TestCollectBoundsItsWarnings(t *testing.T) {
	dir := t.TempDir()
	for i := range 120 {
		if err := os.Symlink("x", filepath.Join(dir, strings.Repeat("l", i+1))); err != nil {
			t.Fatal(err)
		}
	}
	if _, w := collect(t, dir, nil, "*"); len(w) != 101 || w[100] != "and 20 more warnings about outputs" {
		t.Errorf("%d warnings, the last is %q", len(w), w[len(w)-1])
	}
}

func TestCollectRefusesGlobsThatLeadOutside(t *testing.T) {
	for _, glob := range []string{"", "/etc/passwd", "..", "../x", "a/../../x", "[", "a/["} {
		_, _, err := transfer.Collect(t.Context(), transfer.NewMemStore(0), t.TempDir(), []string{glob}, nil)
		if err == nil {
			t.Errorf("%q was accepted", glob)
		}
	}
	if _, _, err := transfer.Collect(t.Context(), transfer.NewMemStore(0), filepath.Join(t.TempDir(), "gone"), nil, nil); err == nil {
		t.Error("a directory that does not exist was accepted")
	}
}

func TestCollectNoticesChanges(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "out")
	for what, change := range map[string]func() error{
		"grows":    func() error { return os.Truncate(name, 9*transfer.ChunkSize) },
		"replaced": func() error { return errors.Join(os.Remove(dir+"/z"), os.WriteFile(dir+"/z", []byte("z"), 0o644)) },
		"removed":  func() error { return os.Remove(dir + "/z") },
		"linked":   func() error { return errors.Join(os.Remove(dir+"/z"), os.Symlink("out", dir+"/z")) },
		"escapes":  func() error { return errors.Join(os.Remove(dir+"/z"), os.Symlink("/etc/passwd", dir+"/z")) },
		"pipe":     func() error { return errors.Join(os.Remove(dir+"/z"), syscall.Mkfifo(dir+"/z", 0o644)) },
	} {
		os.Remove(dir + "/z")
		write(t, dir, map[string]string{"out": strings.Repeat("x", 8*transfer.ChunkSize), "z": "z"})
		keep, err := os.Open(dir + "/z") // so that its inode is not used again
		if err != nil {
			t.Fatal(err)
		}
		put := &meddler{do: func() {
			if err := change(); err != nil {
				t.Error(err)
			}
		}}
		_, _, err = transfer.Collect(t.Context(), put, dir, []string{"*"}, nil)
		if !errors.Is(err, transfer.ErrChanged) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want ErrChanged", what, err)
		}
		keep.Close()
	}
}

// TestCollectWhileDirectoriesAreSwapped lets a hostile program swap a
// directory with a link that leads outside, again and again.
func TestCollectWhileDirectoriesAreSwapped(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	write(t, outside, map[string]string{"f": "secret", "deep/f": "secret"})
	write(t, dir, map[string]string{"d/f": "mine", "d/deep/f": "mine", "inner/f": "mine", "inner/deep/f": "mine"})
	if err := errors.Join(os.Symlink(outside, dir+"/evil"), os.Symlink("inner", dir+"/sly"), syscall.Mkfifo(dir+"/pipe", 0o644)); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			for _, other := range []string{"evil", "sly", "pipe"} {
				select {
				case <-stop:
					return
				default:
				}
				os.Rename(dir+"/d", dir+"/away")
				os.Rename(dir+"/"+other, dir+"/d")
				os.Rename(dir+"/d", dir+"/"+other)
				os.Rename(dir+"/away", dir+"/d")
			}
		}
	})
	secret := transfer.HashOf([]byte("secret"))
	for range 400 {
		s := transfer.NewMemStore(0)
		_, _, err := transfer.Collect(t.Context(), s, dir, []string{"d", "d/*", "d/*/f"}, nil)
		if err != nil && !errors.Is(err, transfer.ErrChanged) {
			t.Error(err)
			break
		}
		if s.Has(secret) {
			t.Error("a file outside was read")
			break
		}
	}
	close(stop)
	wg.Wait()
}

// A snapshot is of what there was when the file was looked at, however fast it grows.
func TestSnapshotOfWhatGrows(t *testing.T) {
	dir, store := t.TempDir(), transfer.NewMemStore(0)
	grows, small := filepath.Join(dir, "grows"), filepath.Join(dir, "small")
	if err := errors.Join(os.WriteFile(grows, bytes.Repeat([]byte("a"), 3*transfer.ChunkSize+5), 0o644), os.WriteFile(small, []byte("one"), 0o644)); err != nil {
		t.Fatal(err)
	}
	put := transfer.PutterFunc(func(h transfer.Hash, data []byte) error { // somebody writes between two reads
		for _, name := range []string{grows, small} {
			f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
			if err == nil {
				_, err = f.WriteString("more")
				err = errors.Join(err, f.Close())
			}
			if err != nil {
				return err
			}
		}
		return store.Put(h, data)
	})
	m, _, err := transfer.Snapshot(t.Context(), put, dir, []string{"grows", "small"}, nil)
	if err != nil || len(m.Entries) != 2 {
		t.Fatalf("%+v, %v", m, err)
	}
	if _, _, err := transfer.Collect(t.Context(), put, dir, []string{"grows"}, nil); !errors.Is(err, transfer.ErrChanged) {
		t.Errorf("the outputs of who still writes are %v", err)
	}
	for _, e := range m.Entries {
		whole, err := os.ReadFile(filepath.Join(dir, e.Path))
		if err != nil {
			t.Fatal(err)
		}
		var got []byte
		for i := range e.Chunks {
			data, err := e.Read(store, i, nil)
			if err != nil {
				t.Fatalf("%s: %v", e.Path, err)
			}
			got = append(got, data...)
		}
		if int64(len(got)) != e.Size || !bytes.HasPrefix(whole, got) {
			t.Errorf("%s: %d bytes that are not its beginning, of %d", e.Path, len(got), e.Size)
		}
	}
}
