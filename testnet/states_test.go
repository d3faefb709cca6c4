package testnet

import (
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"zorilla/node/api"
)

// What is done at one node is seen at the others at once, even by those who
// look all the time.
func TestStatesAreSeenAtOnce(t *testing.T) {
	wholeNodes(t, 1, []int{2, 1, 1}, func(t *nodesTest) {
		const at = 3
		drain := func(d api.Drain) func() error {
			return func() error { _, err := t.Service(at).Drain(t.Context(), d); return err }
		}
		limit := func(change string) func() error {
			return func() error {
				_, err := t.Service(at).SetLimits(t.Context(), []string{change})
				return err
			}
		}
		for _, step := range []struct {
			do   func() error
			want string
		}{
			{func() error { return nil }, "0 "}, {drain(api.Drain{}), "0 draining"}, {drain(api.Drain{Undo: true}), "0 "},
			{limit("paused=yes"), "0 paused"}, {limit("paused=no"), "0 "},
			{func() error { t.submit(at, rigid(1, "sleep", "1h")); time.Sleep(time.Second); return nil }, "1 "},
			{drain(api.Drain{Now: true}), "0 draining"},
		} {
			t.survey(0, at) // somebody has just looked
			if err := step.do(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			if got := t.survey(0, at); got != step.want {
				t.Errorf("a second later it is seen as %q, want %q", got, step.want)
			}
		}
		t.silent(0, at)
	})
}

// silent cuts a node off: whoever looks waits for it once, and sees what it
// told before as old as it is.
func (t *nodesTest) silent(from, at int) {
	t.Helper()
	t.survey(from, at)
	last := time.Now()
	t.Partition([]int{at})
	time.Sleep(time.Second)
	for _, most := range []time.Duration{2100 * time.Millisecond, 100 * time.Millisecond, 100 * time.Millisecond} {
		begun := time.Now()
		list, err := t.Service(from).Survey(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took > most {
			t.Errorf("with a silent member the list takes %v, want at most %v", took, most)
		}
		for _, n := range list {
			if n.ID == t.ID(at) && n.Told.After(last) {
				t.Errorf("what it told before %v is shown as of %v", last, n.Told)
			}
		}
		time.Sleep(500 * time.Millisecond)
	}
}

// survey returns how a node sees another: busy slots and state.
func (t *nodesTest) survey(from, of int) string {
	t.Helper()
	list, err := t.Service(from).Survey(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range list {
		if n.ID == t.ID(of) {
			return fmt.Sprintf("%d %s", n.Busy, n.State)
		}
	}
	return "not there"
}

// A network where nodes work, leave, come back and are started one after the
// other sees no message that nobody should send.
func TestACalmNetworkIsHealthy(t *testing.T) {
	wholeNodes(t, 1, []int{3, 3, 2}, func(t *nodesTest) {
		for i := range 4 {
			t.await(i, t.submit(i, rigid(4, "echo")), time.Minute, completed)
		}
		t.leave(7)
		if err := t.Restart(7); err != nil {
			t.Fatal(err)
		}
		t.Crash(6)
		time.Sleep(time.Minute)
		if err := t.Restart(6); err != nil {
			t.Fatal(err)
		}
		t.known(knownLimit, t.Up())
		for cut := range 30 * time.Second / time.Second { // in the middle of what both sides do
			t.Partition([]int{3, 4})
			t.survey(0, 3)
			time.Sleep(cut * 100 * time.Millisecond)
			t.Heal()
			time.Sleep(cut * 77 * time.Millisecond)
		}
		t.known(knownLimit, t.Up())
		t.await(6, t.submit(6, rigid(4, "echo")), time.Minute, completed)
		time.Sleep(5 * time.Minute)
		luck := int64(0)
		for _, i := range t.Up() {
			info, err := t.Service(i).Node(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			luck += info.Traffic.Of("vicinity", "unanswered")
			for _, c := range info.Traffic {
				if c.Bad && (c.Value != 0 || c.Recent != 0) {
					t.Errorf("node %d: %d %s %s, %d of them lately: %s", i, c.Value, c.Group, c.Name, c.Recent, c.Help)
				}
			}
		}
		if luck == 0 {
			t.Error("a node crashed and nobody counts a question without an answer")
		}
	})
}

// A node calls bad what has come in the last ten minutes, not what ever came.
func TestBadMessagesAreOldNewsAfterAWhile(t *testing.T) {
	wholeNodes(t, 1, []int{2}, func(t *nodesTest) {
		from, to := t.list[1].host, t.list[0].host
		c, err := from.ListenPacket(t.Context(), from.Addr(9))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.WriteTo([]byte("what no node says"), net.UDPAddrFromAddrPort(netip.AddrPortFrom(to.IP(), nodePort))); err != nil {
			t.Fatal(err)
		}
		for _, step := range []struct {
			after time.Duration
			want  int64
		}{{time.Second, 1}, {8 * time.Minute, 1}, {4 * time.Minute, 0}} {
			time.Sleep(step.after)
			info, err := t.Service(0).Node(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range info.Traffic {
				if c.Name == "packets refused" && (c.Value != 1 || c.Recent != step.want) {
					t.Errorf("%v later: %d, %d of them lately, want %d", step.after, c.Value, c.Recent, step.want)
				}
			}
		}
	})
}
