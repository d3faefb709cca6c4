package offers_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"zorilla/cmd/zorilla/offers"
	"zorilla/internal/codec"
	"zorilla/node/api"
)

func TestClusters(t *testing.T) {
	nodes := some()
	nodes[0].Self = true
	for i, rtt := range map[int]time.Duration{1: 200 * time.Microsecond, 2: 300 * time.Microsecond, 3: 9 * time.Millisecond, 4: 11 * time.Millisecond} {
		nodes[i].RTT = codec.Duration(rtt)
	}
	c := offers.ByCluster(nodes)
	var text strings.Builder
	for _, row := range c.Table() {
		fmt.Fprintln(&text, strings.Join(row, " | "))
	}
	fmt.Fprint(&text, c.Text())
	const want = `CLUSTER | NODES | FREE | POWER | RTT | INSIDE | NEAREST | FARTHEST
delft | 4 | 9/16 | 1050 | 0.20ms..0.30ms | 0.20ms | 9.1ms a "site"\ | 140ms far
a "site"\ | 2 | 64/128 | 1000 | 9.0ms..11.0ms | 0.12ms | 9.1ms delft | 9.1ms delft
not known | 1 | 0/1 | 1000 | - | - | - | -
hd 0.03 of 7 nodes: standard deviation by mean of the power of their cores, at most 1; 3 where it is not known count as 1000`
	if text.String() != want {
		t.Errorf("got\n%s\nwant\n%s", text.String(), want)
	}
	if none := offers.ByCluster(nil); len(none.Clusters) != 0 || none.HD != 0 {
		t.Errorf("of no nodes: %+v", none)
	}
}

// Names come from other nodes, and must not steer the terminal.
func TestNamesOfClustersAreClean(t *testing.T) {
	c := offers.ByCluster([]api.NodeInfo{{Cluster: "x\x1b[2J"}})
	if name := c.Table()[1][0]; strings.ContainsRune(name, 0x1b) {
		t.Errorf("%q", name)
	}
}
