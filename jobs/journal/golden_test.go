package journal

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"zorilla/internal/golden"
)

// writeGoldenFile writes a journal in which a key has two entries, one was replaced
// and one was deleted, as a node leaves it that is killed: with its logs.
func writeGoldenFile(t *testing.T, dir string) {
	work := t.TempDir()
	b, err := Open(filepath.Join(work, "journal.db"))
	if err != nil {
		t.Fatal(err)
	}
	stop := start(t, b)
	done := make(chan error, 5)
	tell := func(err error) { done <- err }
	b.Append([]Entry{{Key: "two@zabcd", Data: []byte("first")}, {Key: "gone@zabcd", Data: []byte("x")}}, tell)
	b.Append([]Entry{{Key: "past@zabcd", Data: []byte("long")}, {Key: "past@zabcd", Data: []byte("longer")}}, tell)
	b.Append([]Entry{{Key: "two@zabcd", Data: []byte(strings.Repeat("second ", 10))}}, tell)
	b.Replace(Entry{Key: "past@zabcd", Data: []byte("short")}, tell)
	b.Delete("gone@zabcd", tell)
	for range cap(done) {
		err = errors.Join(err, <-done)
	}
	files, globErr := filepath.Glob(filepath.Join(work, "*"))
	err = errors.Join(err, globErr)
	for _, file := range files {
		b, readErr := os.ReadFile(file)
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed) // a log is mostly zeros
		_, writeErr := w.Write(b)
		err = errors.Join(err, readErr, writeErr, w.Close(), os.WriteFile(filepath.Join(dir, filepath.Base(file)+".gz"), packed.Bytes(), 0o644))
	}
	stop()
	if err != nil {
		t.Fatal(err)
	}
}

// unpackGolden copies such a journal, packed or not, to where it may change.
func unpackGolden(t *testing.T, dir, to string) {
	err := os.CopyFS(to, os.DirFS(dir))
	files, globErr := filepath.Glob(filepath.Join(to, "*.gz"))
	err = errors.Join(err, globErr)
	for _, file := range files {
		b, readErr := os.ReadFile(file)
		r, packErr := gzip.NewReader(bytes.NewReader(b))
		if err = errors.Join(err, readErr, packErr); err != nil {
			break
		}
		b, readErr = io.ReadAll(r)
		err = errors.Join(readErr, os.WriteFile(strings.TrimSuffix(file, ".gz"), b, 0o600), os.Remove(file))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestGoldenFile opens the journals of earlier versions, reads them and appends to
// them. That of 0.1 has no logs yet.
func TestGoldenFile(t *testing.T) {
	golden.Read(t, "file", writeGoldenFile, func(t *testing.T, version, dir string) {
		work := filepath.Join(t.TempDir(), "j")
		unpackGolden(t, dir, work)
		want := map[string][]string{"two@zabcd": {"first", strings.Repeat("second ", 10)}, "past@zabcd": {"short"}}
		for range 2 {
			b, err := Open(filepath.Join(work, "journal.db"))
			if err != nil {
				t.Fatal(err)
			}
			got := map[string][]string{}
			err = b.Load(func(e Entry) error {
				if e.Damage != "" {
					t.Errorf("%s: %s", e.Key, e.Damage)
				}
				got[e.Key] = append(got[e.Key], string(e.Data))
				return nil
			})
			if err != nil || len(b.Lost()) > 0 || !reflect.DeepEqual(got, want) {
				t.Errorf("holds %q, lost %q, %v", got, b.Lost(), err)
			}
			stop := start(t, b)
			if err := appendNow(b, Entry{Key: "two@zabcd", Data: []byte("of today")}); err != nil {
				t.Error(err)
			}
			stop()
			want["two@zabcd"] = append(want["two@zabcd"], "of today")
		}
	})
}
