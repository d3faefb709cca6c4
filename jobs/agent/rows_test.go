package agent_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"zorilla/docs/tables"
	"zorilla/jobs"
	"zorilla/jobs/agent"
	"zorilla/jobs/work"
	"zorilla/transfer"
)

// Rows of docs/exit-codes.md about what must be made to fail; those that happen
// by themselves are in the scripts of cmd/zorilla.

// wantRow compares what was seen with a row.
func wantRow(t *testing.T, name string, seen tables.Seen) {
	t.Helper()
	if err := tables.Check("../../docs/exit-codes.md", name, seen); err != nil {
		t.Error(err)
	}
}

func seen(st jobs.Status) tables.Seen {
	return tables.Seen{State: string(st.State), Code: st.ExitCode, Reason: st.Reason}
}

// declined returns why a node does not work for a job of node 0, when it has
// said so.
func (g *grid) declined(id jobs.ID) tables.Seen {
	g.t.Helper()
	g.await(0, id, time.Minute, func(jobs.Status) bool {
		ex, err := g.node(0).service.Explain(id)
		return err != nil || len(ex.Declined) > 0
	})
	ex, err := g.node(0).service.Explain(id)
	if err != nil || len(ex.Declined) != 1 {
		g.t.Fatalf("declined: %v, %v", ex.Declined, err)
	}
	return tables.Seen{Reason: slices.Collect(maps.Keys(ex.Declined))[0]}
}

// cancel ends a job of node 0 and waits for that.
func (g *grid) cancel(id jobs.ID) {
	g.t.Helper()
	if err := g.node(0).service.Cancel(id, "enough", false); err != nil {
		g.t.Error(err)
	}
	time.Sleep(2 * stopGrace)
}

// inputs puts a file into the store of node 0 and returns its manifest.
func (g *grid) inputs() transfer.Hash {
	g.t.Helper()
	return g.inputsOf([]byte("some data"))
}

func (g *grid) inputsOf(data []byte) transfer.Hash {
	g.t.Helper()
	path := filepath.Join(g.t.TempDir(), "data")
	if err := os.WriteFile(path, data, 0o644); err != nil {
		g.t.Fatal(err)
	}
	tree, err := transfer.Ingest(g.t.Context(), g.node(0).store, []transfer.Input{{Path: path}})
	if err != nil {
		g.t.Fatal(err)
	}
	hash, err := transfer.SaveManifest(g.node(0).store, tree)
	if err != nil {
		g.t.Fatal(err)
	}
	return hash
}

func TestRowsOfBrokenSupervisors(t *testing.T) {
	bubble(t, 2, 1, func(t *testing.T, g *grid) {
		st := g.await(0, g.submit(0, jobs.Spec{Args: []string{"broken"}, Min: 2, Max: 2}), time.Minute, final)
		wantRow(t, "a supervisor failed", seen(st))
		exit := st.Workers[0].Exit
		wantRow(t, "failed", tables.Seen{Code: exit.Code, Reason: string(exit.Cause)})
		array := jobs.Spec{Args: []string{"broken"}, Min: 1, Max: 1, Array: &jobs.Array{Tasks: []work.TaskIDs{{First: 1, Last: 3, Step: 1}}}}
		wantRow(t, "the worker of a rank of an array", seen(g.await(0, g.submit(0, array), 10*time.Minute, final)))
		unknown := jobs.Dependency{Kind: jobs.AfterOK, Job: jobs.ID("aaaaa").At(g.node(0).self.ID)}
		st = g.await(0, g.submit(0, jobs.Spec{Args: []string{"echo"}, Min: 1, Max: 1, After: []jobs.Dependency{unknown}}), time.Minute, final)
		wantRow(t, "a job that it was to start after is not known", seen(st))
	})
}

func TestRowsOfASlowNetwork(t *testing.T) {
	bubble(t, 2, 1, func(t *testing.T, g *grid) {
		const slow = 3 * time.Second
		g.during(func(_, _ *gridNode, path string) error {
			if strings.HasPrefix(path, "/v1/blobs/") {
				time.Sleep(slow)
			}
			return nil
		})
		id := g.submit(0, jobs.Spec{Args: ticking(1), Inputs: g.inputs(), Outputs: []string{"left"}, Min: 2, Max: 2})
		time.Sleep(slow / 2)
		st, _, err := g.node(0).service.Status(id)
		if err != nil {
			t.Fatal(err)
		}
		wantRow(t, "inputs are sent", seen(st))
		st = g.await(0, id, 10*time.Minute, func(st jobs.Status) bool { return st.State == jobs.Collecting })
		wantRow(t, "all workers have ended", seen(st))
		g.await(0, id, 10*time.Minute, final)
		g.during(func(_, to *gridNode, path string) error {
			if to == g.node(1) && path == agent.PeerPrefix+"grant" {
				time.Sleep(slow)
			}
			return nil
		})
		id = g.submit(0, jobs.Spec{Args: ticking(1), Min: 2, Max: 2})
		st = g.await(0, id, slow, func(st jobs.Status) bool { return strings.HasPrefix(st.Reason, "1 of 2") })
		wantRow(t, "workers are granted", seen(st))
		g.await(0, id, 10*time.Minute, final)
	})
}

func TestRowOfAFullDisk(t *testing.T) {
	bubble(t, 2, 1, func(t *testing.T, g *grid) {
		id := g.submit(0, jobs.Spec{Args: ticking(60), Min: 2, Max: 2})
		dir := filepath.Join(g.node(0).dir, "jobs", string(id))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("/dev/full", filepath.Join(dir, "output")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		st, _, err := g.node(0).service.Status(id)
		if err != nil {
			t.Fatal(err)
		}
		wantRow(t, "the disk of the origin has no room", seen(st))
		g.cancel(id) // which waits for output that cannot be kept
		if st, _, err := g.node(0).service.Status(id); err != nil || st.State.Final() {
			t.Errorf("cancelled, it is %s, %v", st.State, err)
		}
		if err := g.node(0).service.Cancel(id, "enough", true); err != nil {
			t.Error(err)
		}
		time.Sleep(2 * stopGrace)
	})
}

// Why a node that had offered is not of use after all.
func TestRowsOfGrantsThatFail(t *testing.T) {
	bubble(t, 2, 1, func(t *testing.T, g *grid) {
		grants := func(wait time.Duration) {
			g.during(func(_, to *gridNode, path string) error {
				if to == g.node(1) && path == agent.PeerPrefix+"grant" {
					time.Sleep(wait)
				}
				return nil
			})
		}
		alone := g.submit(0, jobs.Spec{Args: []string{"true"}, Min: 1, Max: 1, Access: jobs.Access{Net: jobs.NetNone}}) // nobody has namespaces here
		wantRow(t, "cannot keep workers from the network", g.declined(alone))
		g.cancel(alone)
		among := g.submit(0, jobs.Spec{Args: []string{"true"}, Min: 1, Max: 1, Access: jobs.Access{Net: jobs.NetJob}})
		wantRow(t, "cannot keep workers to the nodes of their job", g.declined(among))
		g.cancel(among)
		both := jobs.Spec{Args: []string{"sleep", "1000"}, Min: 2, Max: 2}
		grants(5002 * time.Millisecond) // a hold lasts five seconds from when a grant was announced, and that is answered three round trips of 2 ms later at the latest
		id := g.submit(0, both)
		wantRow(t, "the grant came too late", g.declined(id))
		g.cancel(id)
		grants(5007 * time.Millisecond)
		id = g.submit(0, both)
		wantRow(t, "did not answer", g.declined(id))
		g.cancel(id)
		time.Sleep(2 * time.Minute)

		g.during(func(_, _ *gridNode, path string) error {
			if strings.HasPrefix(path, "/v1/blobs/") {
				return errors.New("no route to the blobs")
			}
			return nil
		})
		both.Inputs = g.inputs()
		id = g.submit(0, both)
		wantRow(t, "fetch inputs", g.declined(id))
		g.cancel(id)
		time.Sleep(time.Minute)

		g.during(func(_, _ *gridNode, path string) error {
			if strings.HasPrefix(path, "/v1/blobs/") {
				time.Sleep(time.Minute)
			}
			return nil
		})
		id = g.submit(0, both)
		g.await(0, id, time.Minute, func(st jobs.Status) bool { return st.State == jobs.Staging })
		time.Sleep(time.Second)
		g.node(1).stop()
		wantRow(t, "leaving", g.declined(id))
		g.cancel(id)
		g.node(1).start()
		time.Sleep(time.Minute)
		id = g.submit(0, both)
		g.await(0, id, time.Minute, func(st jobs.Status) bool { return st.State == jobs.Staging })
		time.Sleep(time.Second)
		g.node(1).kill()
		wantRow(t, "lost", g.declined(id))
		g.cancel(id)
	})
}
