package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// known is the number of solutions by N, from 1 (OEIS A000170).
var known = []uint64{1, 0, 0, 2, 10, 4, 40, 92, 352, 724}

func TestCount(t *testing.T) {
	for i, want := range known {
		n := i + 1
		for _, size := range []int{1, 2, 3, 6, 7, 100} {
			var total uint64
			for rank := range size {
				total += count(n, rank, size)
			}
			if total != want {
				t.Errorf("N=%d in %d parts: %d solutions, want %d", n, size, total, want)
			}
		}
	}
}

func TestFourteen(t *testing.T) {
	if got := count(14, 0, 1); got != 365596 {
		t.Errorf("N=14: %d solutions, want 365596", got)
	}
}

func env(rank, size string) func(string) string {
	return func(name string) string {
		return map[string]string{"ZORILLA_RANK": rank, "ZORILLA_SIZE": size}[name]
	}
}

// parts runs all ranks in the current directory and returns their files.
func parts(t *testing.T, n, size int) []string {
	t.Helper()
	for rank := range size {
		var out strings.Builder
		if err := run([]string{fmt.Sprint(n)}, env(fmt.Sprint(rank), fmt.Sprint(size)), &out); err != nil {
			t.Fatal(err)
		}
		file, err := os.ReadFile(fmt.Sprintf("part-%d.txt", rank))
		if err != nil || string(file) != out.String() {
			t.Errorf("printed %q, wrote %q, %v", out.String(), file, err)
		}
	}
	files, err := filepath.Glob("part-*")
	if err != nil || len(files) != size {
		t.Fatalf("%d parts, %v, want %d", len(files), err, size)
	}
	return files
}

func TestRunAndSum(t *testing.T) {
	t.Chdir(t.TempDir())
	files := parts(t, 10, 6)
	var out strings.Builder
	if err := run(append([]string{"-sum"}, files...), nil, &out); err != nil || out.String() != "724\n" {
		t.Errorf("printed %q, %v", out.String(), err)
	}
	if b, _ := os.ReadFile("part-5.txt"); string(b) != fmt.Sprintf("queens 10 rank 5 of 6: %d solutions\n", count(10, 5, 6)) {
		t.Errorf("part-5.txt is %q", b)
	}
}

func TestSumRefuses(t *testing.T) {
	t.Chdir(t.TempDir())
	files := parts(t, 6, 3)
	write := func(name, text string) string {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	for _, tc := range []struct {
		files []string
		want  string
	}{
		{files[:2], "rank 2 is missing"},
		{append(files[:3:3], write("copy", part{6, 1, 3, 1}.String())), "both of rank 1"},
		{append(files[:2:2], write("other", part{7, 2, 3, 1}.String())), "another count"},
		{[]string{write("text", "queens 6 rank 1 of 3: 1 solutions, or so")}, "not a part"},
		{[]string{write("empty", "")}, "not a part"},
		{[]string{write("range", part{6, 3, 3, 1}.String())}, "not a part"},
		{[]string{"none"}, "no such file"},
	} {
		var out strings.Builder
		err := run(append([]string{"-sum"}, tc.files...), nil, &out)
		if err == nil || !strings.Contains(err.Error(), tc.want) || out.Len() > 0 {
			t.Errorf("%v: %v, printed %q, want %q", tc.files, err, out.String(), tc.want)
		}
	}
}

func TestUsage(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, args := range [][]string{nil, {"-sum"}, {"0"}, {"25"}, {"x"}, {"4", "4"}} {
		if err := run(args, env("", ""), nil); !errors.Is(err, errUsage) {
			t.Errorf("%q: %v", args, err)
		}
	}
	for _, e := range [][2]string{{"1", "1"}, {"-1", "2"}, {"0", ""}, {"", "2"}, {"a", "2"}} {
		if err := run([]string{"4"}, env(e[0], e[1]), nil); err == nil {
			t.Errorf("rank %q of %q was accepted", e[0], e[1])
		}
	}
}
