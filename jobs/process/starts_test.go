package process

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"zorilla/internal/needs"
	"zorilla/jobs/work"
)

// What did not begin through no fault of its own says so, whoever could not
// start it; the faults of a command are its own.
func TestWorkersThatDoNotBegin(t *testing.T) {
	for name, c := range map[string]struct {
		config Config
		spoil  func(root string) error
		tasks  *TaskSpec
		detail string
	}{
		"supervisor ends at once": {config: Config{Executable: "/bin/false"}, detail: "supervisor ended unexpectedly"},
		"no place for its tasks": {spoil: func(root string) error { return os.Mkdir(filepath.Join(root, tasksFile), 0o755) },
			tasks: &TaskSpec{IDs: []work.TaskIDs{{First: 1, Last: 3, Step: 1}}}, detail: "tasks"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := script(t, "touch ran")
			spec.Tasks = c.tasks
			if c.spoil != nil {
				if err := c.spoil(spec.Root); err != nil {
					t.Fatal(err)
				}
			}
			w := start(t, c.config, spec)
			if e := await(t, w); e.Cause != work.Unstarted || e.Code != 125 || !strings.Contains(e.Detail, c.detail) {
				t.Errorf("%+v", e)
			}
			if _, err := os.Stat(filepath.Join(spec.Root, workDir, "ran")); err == nil {
				t.Error("it ran")
			}
			if c.config.Executable == "" { // as its node's next life finds it
				if e := await(t, adopt(t, spec.Root)); e.Cause != work.Unstarted {
					t.Errorf("adopted: %+v", e)
				}
			}
		})
	}
}

// sparse is the head of an ELF file for no machine, whose table of names claims 3 GiB.
func sparse(t *testing.T, path string) {
	t.Helper()
	head := make([]byte, 64+2*64)
	copy(head, "\x7fELF\x02\x01\x01")
	le := binary.LittleEndian
	le.PutUint16(head[16:], 2)
	le.PutUint16(head[18:], 22)
	le.PutUint32(head[20:], 1)
	le.PutUint64(head[40:], 64)
	for at, v := range map[int]uint16{52: 64, 54: 56, 58: 64, 60: 2, 62: 1} {
		le.PutUint16(head[at:], v)
	}
	names := head[128:]
	le.PutUint32(names[4:], 3)
	le.PutUint64(names[24:], 4096)
	le.PutUint64(names[32:], 3<<30)
	err := os.WriteFile(path, head, 0o755)
	if err == nil {
		err = os.Truncate(path, 4096+3<<30)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A command may be any file: its start fails at once, and takes nothing that counts.
func TestCommandsThatAreNoPrograms(t *testing.T) {
	for name, c := range map[string]struct {
		make   func(path string) error
		detail string
	}{
		"pipe":   {func(path string) error { return unix.Mkfifo(path, 0o755) }, "./prog: is not a file that could be executed"},
		"sparse": {func(path string) error { sparse(t, path); return nil }, "./prog: built for another architecture or not an executable file (s390; "},
	} {
		eachWay(t, func(t *testing.T, cfg Config, spec func(string, ...string) Spec) {
			s := spec("none")
			s.Args = []string{"./prog"}
			path := filepath.Join(s.Root, workDir, "prog")
			if err := errors.Join(c.make(path), os.Chmod(path, 0o755)); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			if e, _, _ := run(t, cfg, s); e.Code != codeNotRun || !strings.HasPrefix(e.Detail, c.detail) {
				t.Errorf("%s: %+v", name, e)
			}
			if took := time.Since(began); name == "sparse" && took > 5*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// Nothing is said of a path through a link that the worker's user may not look at.
func TestStartTellsNothingOfOthers(t *testing.T) {
	needs.Root(t)
	closed := t.TempDir()
	if err := errors.Join(os.Mkdir(closed+"/dir", 0o700), os.WriteFile(closed+"/tool", []byte("#!/bin/sh\n"), 0o755), os.Chmod(closed, 0o700)); err != nil {
		t.Fatal(err)
	}
	eachWay(t, func(t *testing.T, cfg Config, spec func(string, ...string) Spec) {
		said := map[string]bool{}
		for _, name := range []string{"dir", "tool", "none"} {
			s := spec("none")
			if s.UID < 0 {
				return
			}
			s.Args = []string{"./link"}
			if err := os.Symlink(filepath.Join(closed, name), filepath.Join(s.Root, workDir, "link")); err != nil {
				t.Fatal(err)
			}
			e, _, _ := run(t, cfg, s)
			said[strings.ReplaceAll(e.Detail, filepath.Join(closed, name), "PATH")] = true // where it leads is its own word
			s = spec("none")
			s.Args, s.Env = []string{name}, []string{"PATH=" + closed}
			if e, _, _ := run(t, cfg, s); e.Code != codeNotFound {
				t.Errorf("%s: %+v", name, e)
			}
		}
		if len(said) != 1 {
			t.Errorf("a start says %v", said)
		}
	})
}
