package node

import (
	"strings"
	"testing"
)

func TestRequire(t *testing.T) {
	for _, c := range []struct {
		what     string
		enforces []string
		want     string
	}{
		{"", nil, ""},
		{"none", nil, ""},
		{"basic", []string{"landlock", "seccomp"}, ""},
		{"basic", []string{"memory", "seccomp"}, "has neither Landlock"},
		{"full", []string{"landlock", "namespaces"}, ""},
		{"full", []string{"landlock", "seccomp"}, "has no namespaces"},
		{"full", nil, "nothing works"},
		{"most", []string{"namespaces"}, "want none, basic, full"},
	} {
		err := require(c.what, c.enforces)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q with %q: %v, want %q", c.what, c.enforces, err, c.want)
		}
	}
}
