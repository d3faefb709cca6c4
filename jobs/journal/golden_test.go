package journal

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"zorilla/internal/golden"
)

// writeGoldenFile writes a journal in which a key has two entries, one was replaced
// and one was deleted.
func writeGoldenFile(t *testing.T, dir string) {
	b, err := Open(filepath.Join(dir, "journal.db"))
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
	stop()
	if err != nil {
		t.Fatal(err)
	}
}

// TestGoldenFile opens the journals of earlier versions, reads them and appends to
// them.
func TestGoldenFile(t *testing.T) {
	golden.Read(t, "file", writeGoldenFile, func(t *testing.T, version, dir string) {
		work := filepath.Join(t.TempDir(), "j")
		if err := os.CopyFS(work, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
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
