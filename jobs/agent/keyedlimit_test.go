package agent

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"zorilla/jobs"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/peer"
	"zorilla/vicinity"
)

// A node passes on so many at a time, and no more.
func TestRelayedAreBounded(t *testing.T) {
	v := visits{s: &Service{self: vicinity.Member{ID: jobtest.Node(1)}}, relayed: &keyedLimit{}}
	id := jobs.ID("aaaaa@" + jobtest.Node(1))
	for range maxRelayed {
		if !v.relayed.acquire("a@b", maxRelayed, maxRelayed) {
			t.Fatal("not as many as may be")
		}
	}
	err := v.asked(t.Context(), "b", peer.Entry{Job: "a@b"}, nil, nil)
	if !errors.Is(err, jobs.ErrRefused) || !strings.Contains(err.Error(), "1024 commands") {
		t.Errorf("one more: %v", err)
	}
	for range maxBeside {
		v.relayed.acquire(id, maxBeside, 2*maxRelayed)
	}
	if _, err := v.Snapshot(t.Context(), id, 0, []string{"*"}); !errors.Is(err, jobs.ErrRefused) || !strings.Contains(err.Error(), "as many files") {
		t.Errorf("one more snapshot: %v", err)
	}
}

func TestCrowd(t *testing.T) {
	var c keyedLimit
	got := ""
	enter := func(id jobs.ID) { got += fmt.Sprint(" ", id, c.acquire(id, 2, 3)) }
	enter("a")
	enter("a")
	enter("a") // its job has enough
	enter("b")
	enter("b") // all have
	c.release("a")
	enter("b")
	enter("a")
	c.release("b")
	c.release("b")
	c.release("a")
	if want := " atrue atrue afalse btrue bfalse btrue afalse"; got != want || c.all != 0 || len(c.of) != 0 {
		t.Errorf("got%s, want%s; left %+v", got, want, &c)
	}
}
