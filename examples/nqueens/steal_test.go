package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"zorilla/examples/peers"
	"zorilla/examples/peers/crew"
)

func TestPlacements(t *testing.T) {
	for n := 1; n <= 8; n++ {
		tree := newTree(n)
		var got uint64
		told := 0
		tree.add(placement{}, func(sum uint64) { got, told = sum, told+1 })
		for tree.step() {
		}
		if want := count(n, 0, 1); got != want || told != 1 {
			t.Errorf("%d queens: %d solutions, told %d times, want %d", n, got, told, want)
		}
	}
	for _, bad := range []placement{{0, 0}, {0, 1}, {2, 0, 0}, {1, 3, 1}, {-1}, {4}, {0, 2, 4, 1}} {
		if bad.fits(4) {
			t.Errorf("%v fits", bad)
		}
	}
}

// What is taken and put back, or counted for somebody else, counts once.
func TestEachTaskCountsOnce(t *testing.T) {
	tree := newTree(8)
	var got uint64
	tree.add(placement{}, func(sum uint64) { got += sum })
	tree.step()
	back, told := tree.give(), tree.give()
	tree.again(back)
	for tree.step() {
	}
	if got != 0 {
		t.Fatalf("%d solutions without %v", got, told.at)
	}
	tree.know(placement{0, 0, 0}, told.at.solutions(8)) // of nobody
	tree.counted(told, told.at.solutions(8))
	if got != 92 || tree.statistics().Redone != 1 {
		t.Errorf("%d solutions, want 92", got)
	}
	tree.know(placement{0}, 1000)
	tree.add(placement{}, func(sum uint64) { got = sum })
	for tree.step() {
	}
	if got != 92-(placement{0}).solutions(8)+1000 || tree.statistics().Spared != 1 {
		t.Errorf("%d solutions: what is known was counted again", got)
	}
}

// It takes a second: long enough to lose ranks.
const board, solutions = 15, "15 queens: 2279184 solutions\n"

// here is a thief of a rank whose node answers that it has two of eight workers.
func here(t *testing.T, rank string) (*thief, <-chan string) {
	t.Helper()
	socket, asked := crew.Socket(t, http.StatusOK, `{"wanted":2,"have":2,"min":1,"max":8}`)
	env := map[string]string{"JOB_ID": "j", "RANK": rank, "ATTEMPT": "1", "MAX": "8", "SLOTS": "1", "SOCKET": socket}
	p, err := peers.Here(func(name string) string { return env[strings.TrimPrefix(name, "ZORILLA_")] })
	if err != nil {
		t.Fatal(err)
	}
	return &thief{tree: newTree(8), place: p, stdout: io.Discard, over: make(chan struct{}), others: map[int]*victim{0: nil}}, asked
}

// A rank that has nothing to do is given back, but not one of which somebody waits for a sum,
// or that has not found anybody yet.
func TestRankWithoutWorkGoes(t *testing.T) {
	one, asked := here(t, "1")
	var sum uint64
	one.tree.add(placement{0}, func(n uint64) { sum = n })
	if one.useless() {
		t.Error("useless with a task")
	}
	one.tree.step()
	taken := one.tree.give()
	for one.tree.step() {
	}
	if one.worked = (time.Time{}); one.useless() {
		t.Error("useless while another rank has a part of its task")
	}
	one.tree.counted(taken, taken.at.solutions(8))
	if one.useless() {
		t.Error("useless at once")
	}
	nobody := map[int]*victim{}
	if one.others, one.worked = nobody, (time.Time{}); one.useless() {
		t.Error("useless before it has asked anybody")
	}
	one.others, one.worked = map[int]*victim{0: nil}, time.Time{}
	go one.resize(t.Context())
	if got := <-asked; got != "POST /v1/workers?release=1" || sum != 4 {
		t.Errorf("asked %q with a sum of %d", got, sum)
	}
}

// Who came too late to hear of the end of all ends, too, whoever else is there.
func TestForsaken(t *testing.T) {
	one, _ := here(t, "1")
	for others, want := range map[*map[int]*victim]bool{{2: nil}: true, {0: nil, 2: nil}: false} {
		one.others, one.seen = *others, time.Now().Add(-2*alone)
		if one.forsaken() != want {
			t.Errorf("%v: forsaken %v", *others, !want)
		}
	}
}

func TestRankZeroAsksForMore(t *testing.T) {
	zero, asked := here(t, "0")
	zero.worked = time.Time{}
	zero.askForMore() // there is nothing to do: it stays, and asks for nobody
	for column := range 4 {
		zero.tree.add(placement{column}, func(uint64) {})
	}
	zero.askForMore() // four tasks are enough for two workers
	zero.tree.add(placement{4}, func(uint64) {})
	zero.askForMore()
	for i, want := range []string{"GET /v1/workers", "GET /v1/workers", "POST /v1/workers?n=8"} {
		if got := <-asked; got != want {
			t.Errorf("request %d: %q, want %q", i, got, want)
		}
	}
}

// A rank that is lost with a task: it is done again by whom it was taken from.
func TestTaskOfALostRank(t *testing.T) {
	hosts := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(hosts, []byte("127.0.0.1 slots=2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	place := func(rank string) peers.Place {
		env := map[string]string{"JOB_ID": hosts, "RANK": rank, "ATTEMPT": "1", "MAX": "2", "SLOTS": "1", "HOSTFILE": hosts}
		p, err := peers.Here(func(name string) string { return env[strings.TrimPrefix(name, "ZORILLA_")] })
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	zero := &thief{tree: newTree(8), place: place("0"), over: make(chan struct{})}
	zero.tree.add(placement{}, zero.end)
	zero.tree.step()
	mine, err := peers.Join(zero.place, zero.serve)
	if err != nil {
		t.Fatal(err)
	}
	defer mine.Leave()
	lost, err := peers.Join(place("1"), func(*peers.Conn) {})
	if err != nil {
		t.Fatal(err)
	}
	defer lost.Leave()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	took := make(chan message, 1)
	go lost.Watch(ctx, func(c *peers.Conn) {
		stop()
		var m message
		if err := errors.Join(c.Send(message{Op: opSteal}), c.Receive(&m)); err != nil {
			t.Error(err)
		}
		took <- m
	})
	if m := <-took; m.Op != opTask || m.N != 8 || len(m.At) != 1 {
		t.Fatalf("took %+v", m)
	}
	for zero.tree.statistics().Redone == 0 {
		runtime.Gosched()
	}
	for zero.tree.step() {
	}
	if <-zero.over; zero.sum != 92 {
		t.Errorf("%d solutions, want 92", zero.sum)
	}
}

// A rank that was lost with work of others: they do it again, and another one comes.
func TestLostThief(t *testing.T) {
	c := crew.New(t, 4, "-steal", fmt.Sprint(board))
	var ranks []*crew.Rank
	for rank := range 3 {
		ranks = append(ranks, c.Start(rank, 1))
		ranks[rank].Says("listens") // so that it is found at once
	}
	lost := c.Start(3, 1)
	lost.Says("rank 3: works for")
	lost.Kill()
	ranks = append(ranks, c.Start(3, 2))
	var said []string
	for _, r := range ranks {
		said = append(said, r.Ends())
	}
	if !strings.HasSuffix(said[0], solutions) {
		t.Errorf("%q", said)
	}
}

// The rank that had the whole board: the next one begins anew, and is told what others have
// done for the first.
func TestLostRankZero(t *testing.T) {
	c := crew.New(t, 3, "-steal", fmt.Sprint(board))
	zero := c.Start(0, 1)
	zero.Says("listens") // so that it is found at once
	one, two := c.Start(1, 1), c.Start(2, 1)
	one.Says("rank 1: works for") // rank 0, or rank 2, which does
	two.Says("rank 2: works for")
	zero.Kill()
	again := c.Start(0, 2)
	said := []string{again.Ends(), one.Ends(), two.Ends()}
	if !strings.HasSuffix(said[0], solutions) {
		t.Errorf("%q", said)
	}
}
