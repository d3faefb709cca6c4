package gossip

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"zorilla/vicinity"
)

// joinerRun steps a joiner through time: every try fails unless ok says
// otherwise. It returns when each address was tried.
func joinerRun(j *joiner, from time.Time, d time.Duration, ok func(string) bool) map[string][]time.Duration {
	tried := map[string][]time.Duration{}
	for now := from; now.Before(from.Add(d)); {
		addr, wake := j.Next(now)
		if addr != "" {
			tried[addr] = append(tried[addr], now.Sub(from))
			j.Done(now, addr, ok != nil && ok(addr))
			continue
		}
		if wake.IsZero() {
			break
		}
		now = wake
	}
	return tried
}

func at(addr string, i int) vicinity.Member {
	return vicinity.Member{ID: vicinity.ID(fmt.Sprint("m", i)), Addrs: []string{addr, "172.17.0.1:5444"}}
}

var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func newTestJoiner(seeds ...string) *joiner {
	return newJoiner(epoch, rand.New(rand.NewPCG(1, 2)), []string{"own:1"}, seeds)
}

func TestSeedsAreTriedWithGrowingPauses(t *testing.T) {
	j := newTestJoiner("a:1", "b:1", "own:1", "a:1")
	tried := joinerRun(j, epoch, 10*time.Minute, nil)
	if len(tried) != 2 || len(tried["a:1"]) < 20 || len(tried["a:1"]) > 30 || tried["a:1"][0] != 0 || tried["b:1"][0] != 0 {
		t.Fatalf("tried %v", tried)
	}
	for i, list := 1, tried["a:1"]; i < len(list); i++ {
		if d := list[i] - list[i-1]; d < 400*time.Millisecond || d > alonePause*9/8 {
			t.Errorf("pause of %v", d)
		}
	}
}

// A node whose members have left before it could exchange state with one once more waits for others
// without being busy.
func TestCheckWithoutMembers(t *testing.T) {
	w := watcher{o: &Overlay{table: newTable()}, joiner: newTestJoiner(), check: epoch}
	for now, end := epoch, epoch.Add(time.Minute); now.Before(end); {
		wait := w.start(t.Context(), now)
		if wait < settled || wait > 2*settled {
			t.Fatalf("waits %v", wait)
		}
		now = now.Add(wait)
	}
}

func TestSeedsOfMembersAreLeftAlone(t *testing.T) {
	j := newTestJoiner("a:1", "b:1")
	j.Joined(at("a:1", 1))
	j.Joined(at("a:1", 1)) // changed
	j.Joined(at("c:1", 2)) // shares an address with the first
	tried := joinerRun(j, epoch, time.Hour, nil)
	if len(tried["a:1"]) != 0 || len(tried["b:1"]) < 25 || len(tried["b:1"]) > 60 {
		t.Fatalf("tried %v", tried)
	}
	if tried := joinerRun(j, epoch.Add(time.Hour), 24*time.Hour, func(string) bool { return true }); len(tried["b:1"]) > 120 {
		t.Errorf("an address that answers was tried %d times in a day", len(tried["b:1"]))
	}

	later := epoch.Add(30 * time.Hour)
	j.Left(later, at("a:1", 1))
	j.Left(later, at("c:1", 2))
	tried = joinerRun(j, later, time.Minute, nil)
	for _, a := range []string{"a:1", "b:1", "c:1"} {
		if len(tried[a]) < 5 || tried[a][0] > time.Second {
			t.Errorf("alone: %s was tried at %v", a, tried[a])
		}
	}
}

func TestFormerMembersAreBounded(t *testing.T) {
	j := newTestJoiner()
	j.Joined(at("stays:1", -1))
	now := epoch
	for i := range 100 {
		m := at(fmt.Sprintf("m%d:1", i), i)
		j.Joined(m)
		now = now.Add(time.Second)
		j.Left(now, m)
	}
	tried := joinerRun(j, now, 24*time.Hour, nil)
	if len(tried) != maxFormers || len(tried["m99:1"]) == 0 || len(tried["m0:1"]) != 0 {
		t.Fatalf("tried %d addresses", len(tried))
	}
	if n := len(tried["m99:1"]); n < 600 || n > 900 { // they may come back at any time
		t.Errorf("tried %d times in a day", n)
	}
	j.Joined(at("m99:1", 99))
	if tried := joinerRun(j, now.Add(48*time.Hour), time.Hour, nil); len(tried["m99:1"]) != 0 || len(tried["m98:1"]) == 0 {
		t.Error("a member that is back is still tried")
	}
}

func TestBeaconsAreAnsweredOnce(t *testing.T) {
	j := newTestJoiner()
	j.Heard(epoch, "a:1")
	j.Heard(epoch, "a:1")
	j.Heard(epoch, "own:1")
	if tried := joinerRun(j, epoch, time.Hour, nil); len(tried) != 1 || !slices.Equal(tried["a:1"], []time.Duration{0}) {
		t.Fatalf("tried %v", tried)
	}
	j.Joined(at("m:1", 1))
	j.Heard(epoch, "b:1")
	j.Heard(epoch, "c:1")
	j.Joined(at("b:1", 2)) // somebody was faster
	tried := joinerRun(j, epoch, time.Hour, nil)
	if len(tried) != 1 || len(tried["c:1"]) != 1 || tried["c:1"][0] > maxHeard {
		t.Fatalf("tried %v", tried)
	}
	for i := range 1000 {
		j.Heard(epoch, fmt.Sprintf("x%d:1", i))
	}
	if len(j.targets) > maxHeards {
		t.Errorf("%d addresses are kept", len(j.targets))
	}
}

// Where many hear the beacon of a newcomer at the same time, they do not all knock at once.
func TestMembersDoNotAnswerABeaconTogether(t *testing.T) {
	const members, part = 200, maxHeard / 10
	parts := map[time.Duration]int{}
	for i := range uint64(members) {
		j := newJoiner(epoch, rand.New(rand.NewPCG(1, i)), nil, nil)
		j.Joined(at("m:1", 1))
		j.Heard(epoch, "new:1")
		for _, d := range joinerRun(j, epoch, time.Hour, nil)["new:1"] {
			parts[d/part]++
		}
	}
	for i := range maxHeard / part {
		if n := parts[i]; n < members/20 || n > members/5 { // a tenth, and what chance adds
			t.Errorf("%d of %d try between %v and %v", n, members, i*part, (i+1)*part)
		}
	}
}

func TestSavedAddresses(t *testing.T) {
	var members []vicinity.Member
	for i := range 100 {
		members = append(members, at(fmt.Sprintf("m%d:1", i), i))
	}
	if list := saved(members, nil); len(list) != maxSaved || list[0] != "m0:1" {
		t.Errorf("saved %v", list)
	}
	if list := saved(nil, []string{"seed:1"}); !slices.Equal(list, []string{"seed:1"}) {
		t.Errorf("alone: saved %v", list)
	}
}
