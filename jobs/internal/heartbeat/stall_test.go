package heartbeat

import (
	"testing"
	"time"

	"zorilla/internal/stall"
	"zorilla/jobs/internal/wire"
	"zorilla/vicinity"
)

// A node that was starved of processor time does not take others for lost before it has read
// what they sent meanwhile; it still finds those that are lost.
func TestStarvedNode(t *testing.T) {
	start := time.Unix(0, 0)
	at := func(d time.Duration) time.Time { return start.Add(d) }
	for name, c := range map[string]struct {
		looks []time.Duration // after the last word of the other
		word  time.Duration   // when another is read; 0 = never
		lost  bool
	}{
		"on time":                 {looks: []time.Duration{Silence, Silence + 10*time.Millisecond}, lost: true},
		"too late":                {looks: []time.Duration{2 * Silence}},
		"too late, a word":        {looks: []time.Duration{2 * Silence, 3 * Silence}, word: 2*Silence + stall.CatchUp/2},
		"too late, none":          {looks: []time.Duration{2 * Silence, 2*Silence + stall.CatchUp}, lost: true},
		"too late again":          {looks: []time.Duration{2 * Silence, 3 * Silence}, lost: true},
		"too late, and not alone": {looks: []time.Duration{2 * Silence, 2*Silence + stall.CatchUp/2}},
	} {
		hub := NewHub(start, []vicinity.ID{"here", "there"}, func(id vicinity.ID) string { return string(id) }, false)
		hub.Beat(start, "there", &wire.Beat{Sent: 1})
		member := NewMember(start, wire.Gang{}, []int{1}, "there")
		member.Answered(start, &wire.Beat{}, &wire.BeatAnswer{})
		read := false
		for _, d := range c.looks {
			if c.word > 0 && d > c.word && !read {
				read = true
				hub.Beat(at(c.word), "there", &wire.Beat{Sent: 2})
				member.Answered(at(c.word), &wire.Beat{}, &wire.BeatAnswer{})
			}
			hub.Tick(at(d))
			member.Tick(at(d))
		}
		if why, _ := member.Lost(); (why != "") != c.lost {
			t.Errorf("%s: a member lost its hub: %q, want %t", name, why, c.lost)
		}
		if why := hub.Lost(); (why != "") != c.lost {
			t.Errorf("%s: a hub lost a member: %q, want %t", name, why, c.lost)
		}
	}
}

// While it catches up it asks its hub, and waits for the answer.
func TestStarvedMemberAsksOnce(t *testing.T) {
	start := time.Unix(0, 0)
	m := NewMember(start, wire.Gang{}, []int{1}, "there")
	m.Answered(start, &wire.Beat{}, &wire.BeatAnswer{})
	late := start.Add(2 * Silence)
	m.Tick(late)
	if got, least := m.Patience(late), stall.CatchUp; got < least {
		t.Errorf("waits %v for an answer, want at least %v", got, least)
	}
}
