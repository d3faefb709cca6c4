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
	v := visits{s: &Service{self: vicinity.Member{ID: jobtest.Node(1)}}, relayed: &crowd{}}
	id := jobs.ID("aaaaa@" + jobtest.Node(1))
	for range maxRelayed {
		if !v.relayed.enter("a@b", maxRelayed, maxRelayed) {
			t.Fatal("not as many as may be")
		}
	}
	err := v.asked(t.Context(), "b", peer.Entry{Job: "a@b"}, nil, nil)
	if !errors.Is(err, jobs.ErrRefused) || !strings.Contains(err.Error(), "1024 commands") {
		t.Errorf("one more: %v", err)
	}
	for range maxBeside {
		v.relayed.enter(id, maxBeside, 2*maxRelayed)
	}
	if _, err := v.Snapshot(t.Context(), id, 0, []string{"*"}); !errors.Is(err, jobs.ErrRefused) || !strings.Contains(err.Error(), "as many files") {
		t.Errorf("one more snapshot: %v", err)
	}
}

func TestCrowd(t *testing.T) {
	var c crowd
	got := ""
	enter := func(id jobs.ID) { got += fmt.Sprint(" ", id, c.enter(id, 2, 3)) }
	enter("a")
	enter("a")
	enter("a") // its job has enough
	enter("b")
	enter("b") // all have
	c.leave("a")
	enter("b")
	enter("a")
	c.leave("b")
	c.leave("b")
	c.leave("a")
	if want := " atrue atrue afalse btrue bfalse btrue afalse"; got != want || c.all != 0 || len(c.of) != 0 {
		t.Errorf("got%s, want%s; left %+v", got, want, &c)
	}
}
