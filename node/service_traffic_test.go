package node

import (
	"reflect"
	"testing"

	"zorilla/flood"
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
