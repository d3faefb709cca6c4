package launch

import (
	"strings"
	"testing"
)

func TestLibrary(t *testing.T) {
	for text, want := range map[string]string{
		"":                "",
		"no such thing\n": "",
		"./prog: error while loading shared libraries: libown.so.1: cannot open shared object file: No such file or directory\n": "libown.so.1",
		"Traceback (most recent call last):\nImportError: libcudart.so.12: cannot open shared object file: No such file\nbye\n":  "libcudart.so.12",
		"OSError: /opt/own/lib.so: cannot open shared object file: No such file or directory":                                    "/opt/own/lib.so",
		"Error loading shared library libz.so.1: No such file or directory (needed by ./prog)\n":                                 "libz.so.1",
		"a.so: cannot open shared object file\nb.so: cannot open shared object file\n":                                           "b.so",
		strings.Repeat("x", 300) + ": cannot open shared object file":                                                            "",
		"x\x01.so: cannot open shared object file":                                                                               "",
		"a.so: cannot open shared object file\n" + strings.Repeat("x", MaxWords):                                                 "",
		": cannot open shared object file":                                                                                       "",
	} {
		got, rest, _ := strings.Cut(Library([]byte(text)), ", ")
		if got != want || got != "" && !strings.Contains(rest, "--mount") {
			t.Errorf("%.100q: got %q %q, want %q", text, got, rest, want)
		}
	}
}
