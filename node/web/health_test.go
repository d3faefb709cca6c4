package web

import (
	"strings"
	"testing"
	"time"

	"zorilla/node/api"
)

// The page calls bad what is bad now. What was counted before stands in the
// list of everything, and luck is nowhere else.
func TestHealthTellsWhatIsBadNow(t *testing.T) {
	look := func(recent int64) healthView {
		return describeHealth(new(meter), api.NodeInfo{Started: time.Now(), Traffic: api.Traffic{
			{Group: "gossip", Name: "packets refused", Value: 212, Bad: true, Recent: recent, Help: "r"},
			{Group: "gossip", Name: "beacons malformed", Bad: true},
			{Group: "vicinity", Name: "unanswered", Value: 9},
		}}, 3, time.Now())
	}
	calm, now := look(0), look(4)
	if len(calm.Bad) != 0 || !strings.HasPrefix(calm.Verdict, "All is well") {
		t.Errorf("calm: %+v, %s", calm.Bad, calm.Verdict)
	}
	if len(now.Bad) != 1 || now.Bad[0] != (tally{"gossip: packets refused", "4", "r"}) || !strings.Contains(now.Verdict, "Messages of 1 kind were dropped in the last ten minutes, of 2 that") {
		t.Errorf("now: %+v, %s", now.Bad, now.Verdict)
	}
	for _, v := range []healthView{calm, now} {
		if len(v.Groups) != 2 || v.Groups[0].Counters[0] != (tally{"packets refused", "212", "r"}) || v.Groups[1].Counters[0].Value != "9" {
			t.Errorf("all traffic: %+v", v.Groups)
		}
	}
}
