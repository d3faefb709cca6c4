package sweep

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// sweep runs all ranks in a new directory and returns their sorted lines.
func sweep(t *testing.T, size int) []string {
	t.Helper()
	script, err := filepath.Abs("sweep.sh")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var lines []string
	for rank := range size {
		cmd := exec.Command(script)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), fmt.Sprint("ZORILLA_RANK=", rank), fmt.Sprint("ZORILLA_SIZE=", size))
		if out, err := cmd.CombinedOutput(); err != nil || !strings.HasPrefix(string(out), fmt.Sprintf("rank %d of %d: ", rank, size)) {
			t.Fatalf("rank %d: %v, %s", rank, err, out)
		}
		b, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("sweep-%d.txt", rank)))
		if err != nil {
			t.Fatal(err)
		}
		lines = slices.AppendSeq(lines, strings.Lines(string(b)))
	}
	slices.Sort(lines)
	return lines
}

func TestSweep(t *testing.T) {
	one, three := sweep(t, 1), sweep(t, 3)
	if len(one) != 200 || !slices.Equal(one, three) {
		t.Errorf("%d values by one rank, %d by three, want 200 equal ones", len(one), len(three))
	}
	for _, want := range []string{"3.300 2\n", "3.500 4\n", "3.900 0\n"} {
		if !slices.Contains(one, want) {
			t.Errorf("%q is missing", want)
		}
	}
}
