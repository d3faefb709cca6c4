package jobs

import (
	"fmt"
	"strings"
	"time"

	"zorilla/internal/codec"
	"zorilla/vicinity"
)

// WorstPair is the two nodes of a job that are farthest apart.
type WorstPair struct {
	A     vicinity.ID    `json:"a"`
	B     vicinity.ID    `json:"b"`
	NameA string         `json:"name_a,omitempty"`
	NameB string         `json:"name_b,omitempty"`
	RTT   codec.Duration `json:"rtt"`
	// Estimated is set where the round trip was worked out from the places of
	// the nodes, not measured.
	Estimated bool `json:"estimated,omitempty"`
	// Links has the worst pair of each link that bounds round trips, as far as it has two nodes.
	Links []LinkPair `json:"links,omitempty"`
}

// LinkPair is the two nodes that are farthest apart of those between which a link of the job rules.
type LinkPair struct {
	Link string `json:"link"`
	WorstPair
}

// Label names a node for people: its name, and its short ID.
func Label(name string, id vicinity.ID) string {
	return strings.TrimSpace(name + " (" + id.Short() + ")")
}

// String tells it in one line.
func (w *WorstPair) String() string {
	about := ""
	if w.Estimated {
		about = "about "
	}
	return fmt.Sprintf("%s%v: %s - %s", about, time.Duration(w.RTT).Round(10*time.Microsecond), Label(w.NameA, w.A), Label(w.NameB, w.B))
}
