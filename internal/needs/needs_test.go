package needs

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// spy is a test that notes how it ends.
type spy struct{ end string }

func (s *spy) Skip(args ...any)  { s.end += "skip: " + fmt.Sprint(args...) }
func (s *spy) Fatal(args ...any) { s.end += "fatal: " + fmt.Sprint(args...) }

func TestPrograms(t *testing.T) {
	listed := filepath.Join(t.TempDir(), "list")
	for _, c := range []struct {
		programs  []string
		file, end string
	}{
		{[]string{"sh"}, "", ""},
		{[]string{"sh", "/usr", "/etc/passwd"}, listed, ""},
		{[]string{"/usr/no-such-library"}, "", "fatal: needs /usr/no-such-library, which is not installed: see .ci/tools"},
		{[]string{"sh", "no-such-program", "nor-this"}, "", "fatal: needs no-such-program, nor-this, which is not installed: see .ci/tools"},
		{[]string{"no-such-program"}, listed, "skip: needs no-such-program"},
		{[]string{"nor-this"}, listed, "skip: needs nor-this"},
		{[]string{"no-such-program"}, "/nowhere/list", "fatal: open /nowhere/list: no such file or directory"},
	} {
		t.Setenv(lacks, c.file)
		var s spy
		if Script(&s, "TestX", c.programs...); s.end != c.end {
			t.Errorf("%q: %q, want %q", c.programs, s.end, c.end)
		}
	}
	want := "no-such-program\tTestX\nnor-this\tTestX\n"
	if b, err := os.ReadFile(listed); err != nil || string(b) != want {
		t.Errorf("listed %q, %v, want %q", b, err, want)
	}
}

// Only root needs not be root.
func TestRoot(t *testing.T) {
	t.Setenv(lacks, "")
	want := map[bool]string{true: "", false: "skip: needs root"}[os.Geteuid() == 0]
	var s spy
	if Script(&s, "TestX", root); s.end != want {
		t.Errorf("%q, want %q", s.end, want)
	}
}

func TestOneOf(t *testing.T) {
	if path := OneOf(t, "no-such-program", "sh"); filepath.Base(path) != "sh" {
		t.Errorf("got %q", path)
	}
}
