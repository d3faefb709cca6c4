package agent_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/work"
	"zorilla/testnet"
)

const swollen = 2 << 20

// swell has a large file for half a minute.
func swell(ctx context.Context, w *testnet.FakeWorker) int {
	if err := os.WriteFile(filepath.Join(w.Dir, "big"), make([]byte, swollen), 0o644); err != nil {
		return 3
	}
	select {
	case <-time.After(30 * time.Second):
		return 0
	case <-ctx.Done():
		return 1
	}
}

// confine gives a node a disk on which so many bytes are left when workers have none,
// and has it keep one MiB free.
func (n *gridNode) confine(bytes int64) {
	n.stop()
	n.keepFree, n.freeDisk = 1<<20, func() (int64, error) {
		free := bytes
		err := filepath.WalkDir(filepath.Join(n.dir, "work"), func(_ string, d fs.DirEntry, err error) error {
			if err == nil && d.Name() == "big" {
				free -= swollen
			}
			return nil
		})
		return free, err
	}
	n.start()
}

// once has the disk of a node stay full when it has been.
func (n *gridNode) once() {
	n.stop()
	full, free := false, n.freeDisk
	n.freeDisk = func() (int64, error) {
		left, err := free()
		if full = full || left < n.keepFree; full {
			left = 0
		}
		return left, err
	}
	n.start()
}

// Of workers that fill the disk of their node as many are ended as it takes, whose output
// files are gone; the others go on.
func TestWorkersMakeRoom(t *testing.T) {
	bubble(t, 1, 4, func(t *testing.T, g *grid) {
		n := g.node(0)
		n.confine(4*swollen - swollen/4)
		goOn := false
		id := g.submit(0, jobs.Spec{Args: []string{"swell"}, Min: 4, Max: 4, Outputs: []string{"big"}, Failing: jobs.Failing{KillOnBadExit: &goOn}})
		st := g.await(0, id, time.Minute, final)
		ended := 0
		for _, w := range st.Workers {
			switch {
			case w.Exit == nil:
				t.Errorf("rank %d has no exit", w.Rank)
			case w.Exit.Cause == work.Full && w.Exit.Code == 137:
				ended++
			case w.Exit.Cause != work.Exited || w.Exit.Code != 0:
				t.Errorf("rank %d: %+v", w.Rank, w.Exit)
			}
		}
		if ended != 1 || st.State != jobs.Failed || st.ExitCode != 137 || !strings.Contains(st.Reason, " was ended, since the disk of its node was nearly full: its files took 2") {
			t.Errorf("%d workers made room; the job is %s, %d: %s", ended, st.State, st.ExitCode, st.Reason)
		}
		if len(st.Warnings) != 1 || !strings.Contains(st.Warnings[0], "its output files were removed") {
			t.Errorf("warnings: %+v", st.Warnings)
		}
		if why := n.service.Broken(); why != "" {
			t.Errorf("there is room, but the node says %q", why)
		}
	})
}

// What the worker of an array had not done when it was ended, is done elsewhere. A node
// that stays full takes nobody in.
func TestTasksGoWhereThereIsRoom(t *testing.T) {
	bubble(t, 2, 2, func(t *testing.T, g *grid) {
		n := g.node(0)
		n.confine(swollen / 2)
		n.once()
		id := g.submit(1, jobs.Spec{Args: []string{"swell"}, Min: 1, Max: 4, Array: &jobs.Array{Tasks: []work.TaskIDs{{First: 1, Last: 8, Step: 1}}}})
		st := g.await(1, id, 10*time.Minute, final)
		if st.State != jobs.Completed || st.Array == nil || st.Array.Failed != 0 {
			t.Errorf("the job is %s, %d: %s; %+v", st.State, st.ExitCode, st.Reason, st.Array)
		}
		if !strings.Contains(fmt.Sprint(st.Warnings), "the disk of its node was nearly full") {
			t.Errorf("nobody was ended: %q", st.Warnings)
		}
		if why := n.service.Broken(); why != "its disk is nearly full" || n.service.Busy() != 0 {
			t.Errorf("the full node says %q, and %d of its slots are used", why, n.service.Busy())
		}
	})
}
