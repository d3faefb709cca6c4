package node

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	"zorilla/node/speed"
	"zorilla/vicinity"
)

// What the owner says counts; what is found later others hear, with the rest.
func TestSpeedsAreSaid(t *testing.T) {
	owner := Owner{Speeds: vicinity.Speeds{Clock: 2400, Bandwidth: 1000}}
	a := start(t, Config{Owner: owner}).ready(t)
	if got := a.Self().Speeds; got != owner.Speeds {
		t.Fatalf("it says %+v, want %+v", got, owner.Speeds)
	}
	b := start(t, Config{Secret: a.invite.Text(), Join: a.Self().Addrs}).ready(t)
	b.members(t, 1)
	measured := a.speeds
	measured.meter = &speed.Meter{ // one that does not wait until this machine is idle
		Root: fstest.MapFS{}, File: filepath.Join(t.TempDir(), "power"), Every: time.Millisecond,
		Busy: func() bool { return false }, Measure: func() int64 { return 1010 },
	}
	var found vicinity.Member
	if err := measured.measure(t.Context(), a.Self, func(m vicinity.Member) { found = m }); err != nil {
		t.Fatal(err)
	}
	want := vicinity.Speeds{Clock: 2400, Power: 1010, Bandwidth: 1000}
	if got := a.Self().Speeds; got != want || found.Speeds != want {
		t.Errorf("it says %+v, and its claims hear %+v, want %+v", got, found.Speeds, want)
	}
	for end := time.Now().Add(30 * time.Second); ; {
		changed := b.net.near.Changed()
		if m, _ := b.net.overlay.Member(a.Self().ID); m.Speeds == want {
			break
		} else if time.Now().After(end) {
			t.Fatalf("another node hears %+v, want %+v", m.Speeds, want)
		}
		select {
		case <-changed:
		case <-time.After(time.Second):
		}
	}
}

// A machine that was measured before is not measured again, unless its owner says another power.
func TestPowerOfAnEarlierStart(t *testing.T) {
	n := testNode(t, Config{State: t.TempDir()})
	power := func() int64 {
		n.findSpeeds()
		return n.speeds.known.Power
	}
	if got := power(); got != 0 {
		t.Fatalf("it has a power of %d already", got)
	}
	kept := fmt.Sprintf(`{"model": %q, "power": 1234}`, speed.Model(os.DirFS("/")))
	if err := os.WriteFile(n.state.file("power"), []byte(kept), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := power(); got != 1234 {
		t.Errorf("the next start has %d", got)
	}
	if n.cfg.Owner.Speeds.Power = 900; power() != 900 {
		t.Error("the owner's word does not count")
	}
}
