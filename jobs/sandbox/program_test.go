package sandbox

import (
	"os"
	"path/filepath"
	"testing"
)

func TestHasProgram(t *testing.T) {
	link := filepath.Join(t.TempDir(), "run")
	if err := os.Symlink("/run", link); err != nil {
		t.Fatal(err)
	}
	for shown, want := range map[string]bool{"/data": true, "/run/lock": true, "/running": true, "/run": false, "/run/": false, "/": false, "/run/zorilla": false, link: false} {
		if got := HasProgram("/etc", shown); got != want {
			t.Errorf("%s is shown: %t", shown, got)
		}
	}
}
