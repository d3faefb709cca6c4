package node

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"zorilla/flood"
	"zorilla/internal/portion"
	"zorilla/internal/uplink"
	"zorilla/jobs"
	"zorilla/node/api"
	"zorilla/node/gossip"
	"zorilla/vicinity"
)

// Whatever a part counts is told, once, with words of explanation.
func TestEveryCounterIsExplained(t *testing.T) {
	var v vicinity.Stats
	var f flood.Stats
	var j jobs.Counts
	var u uplink.Stats
	var p portion.Counts
	stats, sum := new(gossip.Overlay).Stats(), int64(0)
	for name := range stats {
		sum++
		stats[name] = sum
	}
	for group, c := range map[string]struct {
		want int
		told func() api.Traffic
	}{
		"gossip":   {len(stats) + 1, func() api.Traffic { return gossipTraffic(stats, int64(len(stats)+1)) }},
		"vicinity": {numbered(&v), func() api.Traffic { return vicinityTraffic(v) }},
		"flood":    {numbered(&f), func() api.Traffic { return floodTraffic(f) }},
		"jobs":     {numbered(&j), func() api.Traffic { return jobsTraffic(j) }},
		"uplink":   {numbered(&u), func() api.Traffic { return uplinkTraffic(u) }},
		"requests": {numbered(&p), func() api.Traffic { return requestsTraffic(p) }},
	} {
		names, values := map[string]bool{}, map[int64]bool{}
		for _, counter := range c.told() {
			if counter.Group != group || counter.Help == "" || names[counter.Name] || values[counter.Value] || counter.Value == 0 {
				t.Errorf("counter %+v of %s", counter, group)
			}
			names[counter.Name], values[counter.Value] = true, true
		}
		if len(values) != c.want {
			t.Errorf("%s tells %d of its %d counters", group, len(values), c.want)
		}
	}
}

// The luck of a healthy network is counted, and is not bad.
func TestOnlyBadMessagesAreCounted(t *testing.T) {
	luck := []string{
		"vicinity unanswered", "vicinity strangers", "vicinity lost", "flood duplicates", "flood limited", "flood expired", "flood dropped",
		"gossip joins failed", "gossip newcomers unanswered", "gossip connections silent", "gossip connections broken", "gossip beacons of other networks", "requests late",
	}
	bad := []string{
		"vicinity malformed", "vicinity absurd", "vicinity excess", "flood malformed", "flood refused", "flood cut", "jobs malformed", "jobs refused", "jobs forged", "requests refused",
		"gossip packets refused", "gossip packets malformed", "gossip strangers refused", "gossip handshakes failed", "gossip connections over the limit", "gossip connections too many", "gossip handshakes put off",
		"gossip members malformed", "gossip beacons malformed", "gossip packets of unknown kinds",
	}
	is := map[string]bool{}
	all := 0
	for _, c := range slices.Concat(gossipTraffic(nil, 0), vicinityTraffic(vicinity.Stats{}), floodTraffic(flood.Stats{}), jobsTraffic(jobs.Counts{}), requestsTraffic(portion.Counts{})) {
		is[c.Group+" "+c.Name] = c.Bad
		if c.Bad {
			all++
		}
	}
	for _, name := range luck {
		if b, known := is[name]; !known || b {
			t.Errorf("%s: known %t, bad %t", name, known, b)
		}
	}
	for _, name := range bad {
		if !is[name] {
			t.Errorf("%s is not bad", name)
		}
	}
	if all != len(bad) {
		t.Errorf("%d counters are bad, want these %d", all, len(bad))
	}
}

// What was bad is shown for ten minutes, however often somebody looks, and not
// longer.
func TestHealthStaysAsItWasSeen(t *testing.T) {
	var r recent
	start := time.Now()
	value, luck := int64(3), int64(0)
	look := func(at time.Duration) api.Traffic {
		return r.fill(start.Add(at), api.Traffic{bad("malformed", value, ""), counted("lost", luck, "")})
	}
	for at := time.Duration(0); at < 2*time.Hour; at += 10 * time.Second {
		luck++
		if at == time.Hour {
			value += 2
		}
		if at%sampleEvery == 0 {
			r.note(start.Add(at), look(at))
		}
		want := int64(0)
		switch {
		case at < recently: // since the start
			want = 3
		case at >= time.Hour && at < time.Hour+recently:
			want = 2
		case at >= time.Hour && at < time.Hour+recently+sampleEvery:
			want = -1 // one of both
		}
		for range 3 {
			t1 := look(at)
			if got := t1[0].Recent; got != want && want >= 0 || t1[0].Value != value || t1[1].Recent != 0 {
				t.Fatalf("after %v: %+v, want %d lately", at, t1, want)
			}
		}
	}
	if n := len(r.samples); n > int(recently/sampleEvery)+2 {
		t.Errorf("%d samples are kept", n)
	}
}

// numbered gives the fields of a struct the numbers from 1, and returns how
// many they are.
func numbered(counts any) int {
	v := reflect.ValueOf(counts).Elem()
	for i := range v.NumField() {
		if f := v.Field(i); f.CanUint() {
			f.SetUint(uint64(i + 1))
		} else {
			f.SetInt(int64(i + 1))
		}
	}
	return v.NumField()
}
