package origin_test

import (
	"fmt"
	"testing"

	"zorilla/jobs"
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
