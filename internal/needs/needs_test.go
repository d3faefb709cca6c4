package needs

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// spy is a test that notes what becomes of it first: real ones end there.
type spy struct{ end string }

func (s *spy) Skip(args ...any)  { s.end = cmp.Or(s.end, "skip: "+fmt.Sprint(args...)) }
func (s *spy) Fatal(args ...any) { s.end = cmp.Or(s.end, "fatal: "+fmt.Sprint(args...)) }

func TestPrograms(t *testing.T) {
	list := filepath.Join(t.TempDir(), "list")
	for _, c := range []struct {
		programs  []string
		file, end string
	}{
		{[]string{"sh", "no-such-program|sh"}, "", ""},
		{[]string{"sh"}, list, ""},
		{[]string{"sh", "no-such-program", "none|nor-this"}, "", "fatal: needs no-such-program, none|nor-this, which is not here: see .ci/tools"},
		{[]string{"no-such-program"}, list, "skip: needs no-such-program"},
		{[]string{"nor-this"}, list, "skip: needs nor-this"},
	} {
		t.Setenv(lacks, c.file)
		var s spy
		if Script(&s, "TestX", c.programs...); s.end != c.end {
			t.Errorf("%q: %q, want %q", c.programs, s.end, c.end)
		}
	}
	want := "TestX needs no-such-program\nTestX needs nor-this\n"
	if b, err := os.ReadFile(list); err != nil || string(b) != want {
		t.Errorf("listed %q, %v, want %q", b, err, want)
	}
}
