package gossip

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"zorilla/vicinity"
)

// What a node finds out later of itself reaches members, and those that come after.
func TestSpeedsThatAreFoundLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFabric(5 * time.Millisecond)
		nodes := startMany(t, f, 5)
		for _, n := range nodes {
			n.knows(t, 4, time.Minute)
		}
		found := vicinity.Speeds{Clock: 2400, Power: 1010}
		if err := nodes[3].said.SetSpeeds(found); err != nil || nodes[3].Self().Speeds != found || nodes[3].Self().Name != "node3" {
			t.Errorf("it says %+v, %v", nodes[3].Self(), err)
		}
		nodes = append(nodes, startNode(t, memConfig(t, f, 5, nodes[0].Addr())))
		for i, n := range nodes {
			if i != 3 {
				n.await(t, "the speeds are known", 10*time.Second, func() bool { return n.members[nodes[3].ID()].Speeds == found })
			}
		}
		if err := nodes[3].said.SetSpeeds(vicinity.Speeds{Clock: -1}); !errors.Is(err, errMeta) || nodes[3].Self().Speeds != found {
			t.Errorf("it says %+v, %v", nodes[3].Self(), err)
		}
		endAll(t, nodes)
	})
}
