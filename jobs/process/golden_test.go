package process

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"zorilla/internal/golden"
	"zorilla/jobs/launch"
	"zorilla/jobs/proc"
	"zorilla/jobs/work"
)

// TestGoldenMessages reads what supervisors of earlier versions say, and what
// their nodes say to them: a worker and its supervisor outlive an upgrade.
func TestGoldenMessages(t *testing.T) {
	messages := map[string]golden.Message{}
	for name, m := range map[string]message{
		"hello":    {Kind: kindHello, Version: 1, Key: "secret", Input: true},
		"ack":      {Kind: kindAck, Stdout: 70_000, Stderr: 5},
		"heard":    {Kind: kindHeard},
		"stop":     {Kind: kindStop, Grace: 5 * time.Second},
		"notice":   {Kind: kindStop, Notice: time.Minute, Grace: 5 * time.Second},
		"signal":   {Kind: kindSignal, Signal: 10},
		"tasks":    {Kind: kindTasks, Added: 3, Ranges: []TaskRange{{From: 7, Count: 2}}, Last: true},
		"progress": {Kind: kindProgress, Stdout: 80_000, Stderr: 6, AckedOut: 70_000, AckedErr: 5, Stdin: 12, Added: 5, Ended: 4},
		"refused":  {Kind: kindRefused, Text: "wrong key"},
	} {
		var b bytes.Buffer
		if err := writeMessage(&b, m); err != nil {
			t.Fatal(err)
		}
		messages[name] = golden.Message{Bytes: b.Bytes(), Decode: func(b []byte) (any, error) { return readMessage(bytes.NewReader(b)) }}
	}
	golden.Messages(t, "control", messages)
}

// What a worker of an array left in its root, which had been at /state/work/w.
var (
	goldenEnded = time.Date(2026, 11, 22, 10, 0, 3, 0, time.UTC)
	goldenSpec  = Spec{terms: terms{Version: 1, Socket: "/state/sockets/w", Key: "secret", Grace: 5 * time.Second, Spool: 64 << 20, Counts: true},
		Root: "/state/work/w", Args: []string{"./prog", "{}"}, Env: []string{"TMPDIR=/state/work/w/tmp"}, Memory: 1 << 30, Walltime: time.Hour,
		NodeLimit: 2 * time.Hour, OrphanLimit: 3 * time.Hour, Sight: launch.Sight{Hide: []string{"/state"}, Expose: []string{"/opt"}}, UID: -1, GID: -1,
		Tasks: &TaskSpec{IDs: []work.TaskIDs{{First: 1, Last: 9, Step: 2}}, Lines: "list", Outputs: []string{"out-*"}}}
	goldenRecord = record{Version: 1, Socket: "/state/sockets/w", Supervisor: proc.ID{PID: 4001, Start: 77, Boot: "an-earlier-one"}, Worker: proc.ID{PID: 4002, Start: 78, Boot: "an-earlier-one"}}
	goldenExit   = exitRecord{Version: 1, Stdout: 11, Stderr: 4, AckedOut: 5, Tasks: 2,
		Exit: work.Exit{Code: 3, Cause: work.Exited, Detail: "it said so", Started: goldenEnded.Add(-3 * time.Second), Ended: goldenEnded, CPU: 1.5, Peak: 1 << 20}}
	goldenResults = []TaskResult{{Place: 0, Code: 0, Stdout: 5, Took: time.Second}, {Place: 2, Code: 3, Stdout: 6, Stderr: 1, Files: 3, Took: time.Millisecond}}
)

// writeGoldenRoot writes such a root with today's functions.
func writeGoldenRoot(t *testing.T, dir string) {
	var results []byte
	for _, r := range goldenResults {
		results = goldenSpec.Tasks.appendResult(results, r)
	}
	err := errors.Join(save(dir, markEntry, mark{Version: 1, Owner: "the node", Root: "/state/work/w", Device: 1, Inode: 2, Boot: "an-earlier-one"}), save(dir, specEntry, stored{goldenSpec.terms, goldenSpec}), save(dir, recordEntry, goldenRecord), save(dir, exitEntry, goldenExit),
		os.WriteFile(filepath.Join(dir, tasksFile), results, 0o600),
		os.WriteFile(filepath.Join(dir, "stdout"), []byte("hello\nworld"), 0o600), os.WriteFile(filepath.Join(dir, "stderr"), []byte("!abc"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
}

// TestGoldenRoot reads a root that an earlier version left, as Adopt does.
func TestGoldenRoot(t *testing.T) {
	golden.Read(t, "root", writeGoldenRoot, func(t *testing.T, version, dir string) {
		root := filepath.Join(t.TempDir(), "w")
		if err := os.CopyFS(root, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		if owner, err := RootOwner(root); owner != "the node" || !errors.Is(err, ErrCopied) {
			t.Errorf("it is a copy of a root of %q, %v", owner, err)
		}
		var spec Spec
		var rec record
		if err := errors.Join(loadSpec(root, &spec), load(root, recordEntry, &rec)); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(spec, goldenSpec) {
			t.Errorf("the Spec is %+v, was %+v", spec, goldenSpec)
		}
		if rec != goldenRecord || rec.Supervisor.Alive() {
			t.Errorf("the record is %+v", rec)
		}
		spec.Root = root
		w := newWorker(spec, zerolog.Nop())
		if !w.hasEnded() {
			t.Fatal("its exit record is not understood")
		}
		if _, err := w.complete(); err != nil {
			t.Fatal(err)
		}
		e := w.Exit()
		if !e.Started.Equal(goldenExit.Exit.Started) || !e.Ended.Equal(goldenEnded) {
			t.Errorf("it ran from %v to %v", e.Started, e.Ended)
		}
		if e.Code != 3 || e.Cause != work.Exited || e.Detail != "it said so" || e.CPU != 1.5 || e.Peak != 1<<20 {
			t.Errorf("it ended with %+v", e)
		}
		var ended exitRecord
		if err := load(root, exitEntry, &ended); err != nil || ended.AckedOut != 5 || ended.AckedErr != 0 {
			t.Errorf("of its output is acknowledged: %+v, %v", ended, err)
		}
		if stdout, stderr := w.Written(); stdout != 11 || stderr != 4 {
			t.Errorf("wrote %d and %d", stdout, stderr)
		}
		if got, err := w.Tasks().Results(0, 10); err != nil || !reflect.DeepEqual(got, goldenResults) {
			t.Errorf("tasks: %+v, %v", got, err)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
}
