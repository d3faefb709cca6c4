package process

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
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
		"no place for its record": {spoil: func(root string) error { return os.MkdirAll(filepath.Join(root, recordFile, "x"), 0o755) }, detail: recordFile},
		"no place for its tasks": {spoil: func(root string) error { return os.Mkdir(filepath.Join(root, tasksFile), 0o755) },
			tasks: &TaskSpec{IDs: []TaskIDs{{First: 1, Last: 3, Step: 1}}}, detail: "tasks"},
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
			if e := await(t, w); e.Cause != Unstarted || e.Code != 125 || !strings.Contains(e.Detail, c.detail) {
				t.Errorf("%+v", e)
			}
			if _, err := os.Stat(filepath.Join(spec.Root, workDir, "ran")); err == nil {
				t.Error("it ran")
			}
			if c.config.Executable == "" { // as its node's next life finds it
				if e := await(t, adopt(t, spec.Root)); e.Cause != Unstarted {
					t.Errorf("adopted: %+v", e)
				}
			}
		})
	}
}
