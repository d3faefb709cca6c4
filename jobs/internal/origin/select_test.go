package origin_test

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/journal"
)

// Whatever ended since, every job can be found, page by page, and none that has not
// ended is missing; also after a restart.
func TestSelect(t *testing.T) {
	atHome(t, func(t *testing.T, h *home) {
		first := h.submit(jobs.Spec{Name: "long", Args: []string{"wait"}})
		var ended []jobs.ID
		for i := range 25 {
			id := h.submit(jobs.Spec{Name: fmt.Sprintf("n%d", i), Args: []string{"echo", "Weather"}})
			h.await(id)
			ended = append([]jobs.ID{id}, ended...)
		}
		failed := h.submit(jobs.Spec{Args: []string{"fail", "3"}})
		h.await(failed)
		for life := range 2 {
			for from := 0; from < 26; from += 10 {
				d := h.Select(jobs.Selection{Skip: from, Limit: 10})
				if len(d.Active) != 1 || d.Active[0].ID != first || d.Active[0].Name != "long" || d.Found != 26 || d.Over != 26 || d.Running+d.Waiting != 1 {
					t.Fatalf("life %d, from %d: %+v", life, from, d)
				}
				for i, s := range d.Ended {
					if want := append([]jobs.ID{failed}, ended...)[from+i]; s.ID != want || s.Ended.IsZero() {
						t.Errorf("life %d: place %d is %s, want %s", life, from+i, s.ID, want)
					}
				}
				if want := min(10, 26-from); len(d.Ended) != want {
					t.Errorf("life %d: %d from %d on, want %d", life, len(d.Ended), from, want)
				}
			}
			for text, want := range map[string]int{"N7": 1, "n1": 11, string(ended[3][:5]): 1, "nothing": 0} {
				if d := h.Select(jobs.Selection{Text: text, Limit: 3}); d.Found != want || len(d.Ended) != min(want, 3) || len(d.Active) != 0 || d.Over != 26 {
					t.Errorf("life %d: %d with %q, want %d", life, d.Found, text, want)
				}
			}
			if d := h.Select(jobs.Selection{States: []jobs.State{jobs.Failed}, Limit: 3}); d.Found != 1 || d.Ended[0].ID != failed || d.Ended[0].ExitCode != 3 {
				t.Errorf("life %d: failed ones are %+v", life, d)
			}
			if d := h.Select(jobs.Selection{Skip: 1 << 40, Limit: -1}); d.Found != 26 || len(d.Ended) != 0 {
				t.Errorf("life %d: beyond the end: %+v", life, d)
			}
			if life == 0 {
				h.stop()
				h.start()
			}
		}
		if err := h.Cancel(first, "enough", true); err != nil {
			t.Fatal(err)
		}
		h.await(first)
	})
}

// counting is a journal that counts how often it is read.
type counting struct {
	*folder
	reads atomic.Int64
}

func (c *counting) Read(key string) ([]journal.Entry, error) {
	c.reads.Add(1)
	return c.folder.Read(key)
}

// A page that asks for a text again and again has the journal read once, also while jobs come and go.
func TestTextIsLookedForOnce(t *testing.T) {
	atHome(t, func(t *testing.T, h *home) {
		const old, near = 300, jobs.ListEnded
		c := &counting{folder: &folder{Memory: h.log, t: t, dir: t.TempDir()}}
		h.stop()
		h.wrap = func(m *journal.Memory) journal.Journal { c.Memory = m; return c }
		rnd := rand.New(rand.NewPCG(1, 1))
		begun := time.Now()
		var first jobs.ID
		for i := range old + near {
			spec := jobs.Spec{Name: fmt.Sprintf("n%d", i), Args: []string{"x"}, Min: 1, Max: 1, Slots: 1}
			id := jobs.NewID(rnd, h.self.ID)
			if i == 0 {
				first = id
			}
			c.Append(ended(id, begun.Add(time.Duration(i)*time.Millisecond), spec, "it failed"), func(error) {})
		}
		h.start()
		for i, q := range []struct {
			q     jobs.Selection
			found int
			reads int64
		}{
			{jobs.Selection{Text: "n0"}, 1, old},
			{jobs.Selection{Text: "n0"}, 1, 0},
			{jobs.Selection{Text: "n0", States: []jobs.State{jobs.Completed}}, 0, 0},
			{jobs.Selection{Text: "N0"}, 1, 0},
			{jobs.Selection{Text: "n1"}, 411, old},
			{jobs.Selection{Text: "n12"}, 111, 111},
			{jobs.Selection{Text: "n1"}, 411, old},
			{jobs.Selection{Text: string(first[:5])}, 1, old - 1},
			{jobs.Selection{}, old + near, 0},
		} {
			before := c.reads.Load()
			if d := h.Select(q.q); d.Found != q.found || c.reads.Load()-before != q.reads {
				t.Errorf("%d: found %d, want %d, and read %d jobs, want %d", i, d.Found, q.found, c.reads.Load()-before, q.reads)
			}
		}
		h.Select(jobs.Selection{Text: "n0"})
		if err := h.Remove(first); err != nil {
			t.Fatal(err)
		}
		before := c.reads.Load()
		if d := h.Select(jobs.Selection{Text: "n0"}); d.Found != 0 || c.reads.Load() != before {
			t.Errorf("found %d, and read %d jobs", d.Found, c.reads.Load()-before)
		}
	})
}
