package agent_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/peer"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/journal"
)

// slow is a journal that does not get to what it is to replace.
type slow struct {
	journal.Journal
	on *atomic.Bool
}

func (s slow) Replace(e journal.Entry, done func(error)) {
	if !s.on.Load() {
		s.Journal.Replace(e, done)
	}
}

// booking asks node 0, as a node, to book a slot for a job of node 1 in an hour, under a key; for how long in ms.
func (g *grid) booking(as int, key uint64, lease time.Duration) (a wire.Booked, err error) {
	m := &wire.Book{Job: jobs.ID("aaaaa").At(g.node(1).self.ID), Key: key, Lease: lease.Milliseconds()}
	if lease > 0 {
		m.New = &wire.Booking{In: time.Hour.Milliseconds(), Length: 60_000, Workers: 1, Room: wire.Room{Slots: 1}}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	client := &peer.Client{HTTP: &http.Client{Transport: g.node(as)}}
	err = client.Send(ctx, g.node(0).self.ID, peer.PathBook, m, &a)
	return a, err
}

// A booking that was answered is there after a crash, beside jobs of the node's own; one that was not is not. What
// has ended stays away.
func TestBookingsOutliveTheirNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, hold := newGrid(t, 2, 2), &atomic.Bool{}
		g.node(0).stop()
		g.node(0).wrap = func(m *journal.Memory) journal.Journal { return slow{m, hold} }
		g.node(0).start()
		id := g.submit(0, jobs.Spec{Args: []string{"tick", "1"}, Min: 1, Max: 1})
		g.await(0, id, time.Minute, func(st jobs.Status) bool { return st.State == jobs.Completed })
		keys := func() int { return len(g.node(0).service.Booked()) }
		if _, err := g.booking(0, 1, wire.BookLease); err == nil {
			t.Error("a node books for another one's job")
		}
		for _, key := range []uint64{1, 2} {
			if a, err := g.booking(1, key, wire.BookLease); err != nil || !a.OK {
				t.Fatal(a, err)
			}
		}
		if a, err := g.booking(1, 2, 0); err != nil || !a.OK || keys() != 1 {
			t.Fatal(a, err, keys())
		}
		hold.Store(true)
		if a, err := g.booking(1, 3, wire.BookLease); err == nil || keys() != 2 {
			t.Errorf("before it is durable it is answered %+v, %d are counted", a, keys())
		}
		hold.Store(false)
		g.node(0).crash()
		g.node(0).start()
		list := g.node(0).service.Booked()
		if len(list) != 1 || g.node(0).bookingsOnDisk() != 1 || list[0].Room.Slots != 1 || !list[0].Confirmed || list[0].To.Before(list[0].From.Add(time.Minute)) {
			t.Errorf("after the crash it has %+v", list)
		}
		if st, _, err := g.node(0).service.Status(id); err != nil || st.State != jobs.Completed {
			t.Errorf("its own job is %s, %v", st.State, err)
		}
		time.Sleep(wire.BookLease)
		synctest.Wait()
		if left := g.node(0).bookingsOnDisk(); keys() != 0 || left != 0 {
			t.Errorf("when the lease has ended %d are there, %d on disk", keys(), left)
		}
		if a, err := g.booking(1, 4, wire.BookLease); err != nil || !a.OK {
			t.Fatal(a, err)
		}
		g.node(0).service.Drain(false, false)
		if keys() != 0 {
			t.Error("a node that drains is booked")
		}
		for i := range 2 {
			g.node(i).stop()
		}
	})
}

func (n *gridNode) bookingsOnDisk() int {
	var names []string
	_ = n.log.Load(func(e journal.Entry) error { // what cannot be read is none
		if strings.Contains(e.Key, ".b") && !slices.Contains(names, e.Key) {
			names = append(names, e.Key)
		}
		return nil
	})
	return len(names)
}
