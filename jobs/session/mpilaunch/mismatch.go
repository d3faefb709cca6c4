package mpilaunch

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"zorilla/jobs/mpi"
)

// mismatch returns a warning if a command starts a program by the launcher of another MPI: each
// of its ranks would be alone, and the job would seem to end well. "" = it does not, as far as
// its words tell, and those of a script.
func mismatch(args []string) string {
	for _, line := range lines(args) {
		if text := mixed(line); text != "" {
			return text
		}
	}
	return ""
}

// quotes are what stands around words in a shell's line.
const quotes = `"';&|(){}`

// maxScript is how much of a script is read.
const maxScript = 64 << 10

// lines returns the words of a command, and of each line of a text among them that a shell is to
// run: an argument, as for sh -c, or a file. Words are what blanks part: more is the shell's to know.
func lines(args []string) [][]string {
	all := [][]string{args}
	for _, a := range args {
		text := a
		if !strings.ContainsAny(a, " \t\n") {
			text = script(a)
		}
		for line := range strings.Lines(text) {
			words := strings.Fields(line)
			for i, w := range words {
				words[i] = strings.Trim(w, quotes)
			}
			if len(words) > 1 && !strings.HasPrefix(words[0], "#") {
				all = append(all, words)
			}
		}
	}
	return all
}

// script returns the beginning of a file that is a script, or "".
func script(path string) string {
	f, err := mpi.OpenFile(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxScript))
	if err != nil || bytes.IndexByte(b, 0) >= 0 {
		return ""
	}
	return string(b)
}

// mixed is mismatch for the words of one line: the first program after a launcher counts.
func mixed(words []string) string {
	launcher, its := "", mpi.None
	for _, w := range words {
		path := w
		if !strings.Contains(w, "/") {
			path, _ = exec.LookPath(w) // "" is no file
		}
		if kind := mpi.LauncherKind(path); kind != mpi.None {
			launcher, its = filepath.Base(w), kind
			continue
		}
		if its == mpi.None {
			continue
		}
		if _, err := os.Stat(w); err == nil {
			path = w // launchers look in the work directory, too
		}
		switch found, err := mpi.Detect(mpi.OpenFile, path); {
		case err != nil || found.Kind == mpi.None:
		case found.Kind == its:
			return ""
		default:
			return fmt.Sprintf("%s is the launcher of %s, and %s is linked with %s: each rank will be alone; "+
				"name the other launcher, as mpirun.openmpi or mpiexec.mpich",
				launcher, its, w, found.Kind)
		}
	}
	return ""
}
