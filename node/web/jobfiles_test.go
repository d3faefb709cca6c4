package web

import (
	"testing"

	"zorilla/jobs"
)

// A card without files says why there are none.
func TestFilesNoteSaysWhyThereAreNone(t *testing.T) {
	for _, c := range []struct {
		state                jobs.State
		files, left, unknown int
		want                 string
	}{
		{jobs.Running, 0, 0, 0, "They come here when workers have ended."},
		{jobs.Completed, 0, 0, 0, "There are none: see the warnings."},
		{jobs.Completed, 2, 0, 0, ""},
		{jobs.Completed, 9, 7, 0, "7 more files are not shown: zorilla get k7f3q@zeb2a fetches all."},
		{jobs.Completed, 9, 0, 1, "The list of 1 rank cannot be read at the moment."},
	} {
		st := jobs.Status{ID: "k7f3q@zeb2a", State: c.state}
		if got := filesNote(&st, c.files, c.left, c.unknown); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}
