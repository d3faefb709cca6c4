// Package built makes the programs that tests run beside themselves. The cache of go test
// does not see what a go command reads that a test starts, and would tell for ever that the
// test passes, whatever becomes of the program: Program has the test itself look at it.
package built

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Program builds a package of this module, with these variables beside those of the test.
func Program(to, pkg string, env ...string) error {
	if err := look(pkg, env); err != nil {
		return err
	}
	if out, err := command(env, "build", "-o", to, pkg).CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w: %s", pkg, err, out)
	}
	return nil
}

func command(env []string, args ...string) *exec.Cmd {
	cmd := exec.Command("go", args...)
	cmd.Env = append(os.Environ(), env...)
	return cmd
}

// look opens the directories of a package and of all that it imports from this module: what is
// opened, the names, sizes and times of a directory's files, is what the cache compares.
func look(pkg string, env []string) error {
	var stderr bytes.Buffer
	cmd := command(env, "list", "-deps", "-json=Dir,EmbedFiles,Module", pkg)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("list what %s is made of: %w: %s", pkg, err, strings.TrimSpace(stderr.String()))
	}
	dirs, modules := map[string]bool{}, map[string]bool{}
	for dec := json.NewDecoder(bytes.NewReader(out)); dec.More(); {
		var p struct {
			Dir        string
			EmbedFiles []string
			Module     *struct {
				Main bool
				Dir  string
			}
		}
		if err := dec.Decode(&p); err != nil {
			return err
		}
		if p.Module == nil || !p.Module.Main {
			continue // of a version that go.mod names
		}
		dirs[p.Dir], modules[p.Module.Dir] = true, true
		for _, name := range p.EmbedFiles {
			dirs[filepath.Dir(filepath.Join(p.Dir, name))] = true
		}
	}
	for dir := range modules {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
			return err
		}
	}
	for dir := range dirs {
		if _, err := os.ReadDir(dir); err != nil {
			return err
		}
	}
	return nil
}
