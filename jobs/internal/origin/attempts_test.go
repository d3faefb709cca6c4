package origin_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"zorilla/jobs"
)

// attempt returns what an attempt of ranks printed, a line each.
func (h *home) attempt(id jobs.ID, rank, attempt int) (lines []string, err error) {
	h.t.Helper()
	err = h.Output(h.t.Context(), id, jobs.OutputQuery{Rank: rank, Attempt: attempt}, func(o jobs.Output) error {
		if o.Attempt != attempt {
			h.t.Errorf("a piece of attempt %d: %q", o.Attempt, o.Data)
		}
		lines = append(lines, strings.TrimSuffix(string(o.Data), "\n"))
		return nil
	})
	slices.Sort(lines)
	return lines, err
}

// What each attempt printed can be read until the job is forgotten, also after a start of the
// node; that of the one that counts is what a job printed.
func TestOutputOfEarlierAttempts(t *testing.T) {
	atHome(t, func(t *testing.T, h *home) {
		id := h.submit(jobs.Spec{Args: []string{"retry"}, Min: 2, Failing: jobs.Failing{Retries: 2}})
		if st := h.await(id); st.State != jobs.Failed || !slices.Equal(st.Earlier, []int{1, 2}) {
			t.Fatalf("%s, earlier attempts: %d", st.State, st.Earlier)
		}
		for range 2 {
			if got := h.printed(id, 1); got != "rank 1, attempt 3\n" {
				t.Errorf("the job printed %q", got)
			}
			for attempt, want := range map[int][]string{
				1: {"rank 0, attempt 1", "rank 1, attempt 1"}, 2: {"rank 0, attempt 2", "rank 1, attempt 2"}, 3: {"rank 0, attempt 3", "rank 1, attempt 3"},
			} {
				if got, err := h.attempt(id, -1, attempt); err != nil || !slices.Equal(got, want) {
					t.Errorf("attempt %d: %q, %v", attempt, got, err)
				}
				if got, err := h.attempt(id, 1, attempt); err != nil || !slices.Equal(got, want[1:]) {
					t.Errorf("attempt %d of rank 1: %q, %v", attempt, got, err)
				}
			}
			for rank, want := range map[int]string{-1: "no attempt 4 of job ", 1: "no attempt 4 of rank 1 of job "} {
				if _, err := h.attempt(id, rank, 4); !errors.Is(err, jobs.ErrNotFound) || !strings.Contains(err.Error(), want) || !strings.HasSuffix(err.Error(), "is kept: there are 1 to 3") {
					t.Errorf("attempt 4: %v", err)
				}
			}
			h.stop()
			h.start()
		}
		once := h.submit(jobs.Spec{Args: []string{"echo", "hello"}})
		if st := h.await(once); st.Earlier != nil {
			t.Errorf("earlier attempts of a job that was run once: %d", st.Earlier)
		}
		if _, err := h.attempt(once, -1, 2); err == nil || !strings.HasSuffix(err.Error(), "is kept: there is 1") {
			t.Errorf("attempt 2 of a job that was run once: %v", err)
		}
		if err := h.Remove(id); err != nil {
			t.Fatal(err)
		}
		if _, err := h.attempt(id, -1, 1); err == nil {
			t.Error("an attempt of a job that is forgotten")
		}
	})
}

// What the disk lost of an attempt is told to who reads that one, and to nobody else.
func TestDamagedOutputOfEarlierAttempts(t *testing.T) {
	atHome(t, func(t *testing.T, h *home) {
		id := h.submit(jobs.Spec{Args: []string{"retry"}, Min: 2, Failing: jobs.Failing{Retries: 1}})
		h.await(id)
		h.stop()
		path := filepath.Join(h.dir, "jobs", string(id), "output")
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		at := strings.Index(string(b), "rank 1, attempt 1")
		b[at] ^= 1
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		h.start()
		if got, err := h.attempt(id, -1, 1); !errors.Is(err, jobs.ErrDamaged) || !strings.HasSuffix(err.Error(), "rank 1: standard output: bytes 0 to 17") || !slices.Equal(got, []string{"rank 0, attempt 1"}) {
			t.Errorf("attempt 1: %q, %v", got, err)
		}
		if got, err := h.attempt(id, 0, 1); err != nil || !slices.Equal(got, []string{"rank 0, attempt 1"}) {
			t.Errorf("attempt 1 of rank 0: %q, %v", got, err)
		}
		if got, err := h.attempt(id, -1, 2); err != nil || len(got) != 2 {
			t.Errorf("attempt 2: %q, %v", got, err)
		}
		if got := h.printed(id, 1); got != "rank 1, attempt 2\n" {
			t.Errorf("the job printed %q", got)
		}
	})
}
