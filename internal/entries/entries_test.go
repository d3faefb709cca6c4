package entries_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"zorilla/internal/codec"
	"zorilla/internal/entries"
)

const limit = 1 << 20

func add(t *testing.T, path, name, value string) {
	t.Helper()
	if err := entries.Append(path, name, []byte(value)); err != nil {
		t.Fatal(err)
	}
}

// want compares the values of some names; "-" = there is none, "!" = it is damaged.
func want(t *testing.T, path string, values map[string]string) {
	t.Helper()
	f, err := entries.Read(path, limit)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range values {
		got, err := f.Get(name)
		switch {
		case value == "-" && errors.Is(err, fs.ErrNotExist), value == "!" && errors.Is(err, codec.ErrMalformed):
		case err != nil || string(got) != value:
			t.Errorf("%s is %q, %v; want %q", name, got, err, value)
		}
	}
}

func TestLatestOfANameCounts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if _, err := entries.Read(path, limit); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	add(t, path, "mark", "me")
	add(t, path, "claim", "one")
	if err := entries.Sync(path, "claim", []byte("two")); err != nil {
		t.Fatal(err)
	}
	add(t, path, "spec", "")
	want(t, path, map[string]string{"mark": "me", "claim": "two", "spec": "", "none": "-"})
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if err := entries.Drop(path, "claim"); err != nil {
		t.Fatal(err)
	}
	want(t, path, map[string]string{"mark": "me", "claim": "-", "spec": ""})
	add(t, path, "claim", "three")
	if err := entries.Keep(path, limit, "mark", "claim", "none"); err != nil {
		t.Fatal(err)
	}
	want(t, path, map[string]string{"mark": "me", "claim": "three", "spec": "-"})
	if info, err := os.Stat(path); err != nil || info.Size() > 60 {
		t.Errorf("%d bytes are left, %v", info.Size(), err)
	}
}

// Where the end is, is found however long the entries before it are.
func TestLongValues(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	for n := 16<<10 - 40; n < 16<<10+10; n++ { // around what is read at once
		add(t, path, "spec", strings.Repeat("s", n))
		add(t, path, "claim", fmt.Sprint(n))
		want(t, path, map[string]string{"spec": strings.Repeat("s", n), "claim": fmt.Sprint(n)})
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, info.Size()-1); err != nil {
		t.Fatal(err)
	}
	add(t, path, "mark", "me")
	want(t, path, map[string]string{"claim": fmt.Sprint(16<<10 + 8), "mark": "me"})
}

func TestNamesAndFilesThatAreRefused(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	for _, name := range []string{"", "a name that is as long as no name of an entry may be"} {
		if err := entries.Append(path, name, nil); err == nil {
			t.Errorf("name %q", name)
		}
	}
	add(t, path, "mark", "me")
	if _, err := entries.Read(path, 10); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("longer than its limit: %v", err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if err := entries.Append(link, "claim", nil); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("through a link: %v", err)
	}
	if _, err := entries.Read(link, limit); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("through a link: %v", err)
	}
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, other := range []string{dir, pipe} {
		if _, err := entries.Read(other, limit); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("%s: %v", other, err)
		}
	}
}

// Whoever is killed while it appends leaves the file as it was; so does a bit that is
// flipped, or it shows.
func TestEveryByteAndBit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	add(t, path, "mark", "me")
	add(t, path, "claim", "one")
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	add(t, path, "claim", "two")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for n := len(before); n < len(whole); n++ {
		if err := os.WriteFile(path, whole[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		want(t, path, map[string]string{"mark": "me", "claim": "one"})
		add(t, path, "spec", "next")
		want(t, path, map[string]string{"mark": "me", "claim": "one", "spec": "next"})
	}
	for bit := range 8 * len(whole) {
		spoiled := bytes.Clone(whole)
		spoiled[bit/8] ^= 1 << (bit % 8)
		if err := os.WriteFile(path, spoiled, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := entries.Read(path, limit)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := f.Get("claim"); !errors.Is(err, codec.ErrMalformed) {
			t.Errorf("bit %d: %q, %v", bit, got, err)
		}
		if got, err := f.Get("mark"); string(got) != "me" && !errors.Is(err, codec.ErrMalformed) {
			t.Errorf("bit %d: %q, %v", bit, got, err)
		}
	}
}

// What is to be durable is synced: what cannot be is an error.
func TestSync(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	add(t, path, "claim", "one")
	if err := entries.Sync(path, "claim", nil); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("a pipe was synced: %v", err)
	}
}
