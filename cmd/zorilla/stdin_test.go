package main

import (
	"os"
	"path/filepath"
	"testing"
)

// What cannot bring anything any more is no standard input; what still may is one.
func TestStandardInputThatIsExhausted(t *testing.T) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	empty, err := os.Create(filepath.Join(t.TempDir(), "empty"))
	if err != nil {
		t.Fatal(err)
	}
	pipe := func(text string, closes bool) *os.File {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.WriteString(text); err != nil {
			t.Fatal(err)
		}
		if closes {
			w.Close()
		} else {
			t.Cleanup(func() { w.Close() })
		}
		return r
	}
	for what, c := range map[string]struct {
		f    *os.File
		none bool
	}{
		"/dev/null":           {null, true},
		"a file":              {empty, false}, // others may write to it
		"a closed pipe":       {pipe("", true), true},
		"a pipe":              {pipe("", false), false},
		"a pipe with a text":  {pipe("text", false), false},
		"a closed one of one": {pipe("text", true), false},
	} {
		if r, err := openStdin(c.f, ""); err != nil || (r == nil) != c.none {
			t.Errorf("%s: %v, %v, want none: %t", what, r, err, c.none)
		}
		c.f.Close()
	}
}
