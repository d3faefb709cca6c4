package offers_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pelletier/go-toml/v2"

	"zorilla/cmd/zorilla/offers"
	"zorilla/internal/codec"
	"zorilla/internal/units"
	"zorilla/node/api"
	"zorilla/vicinity"
)

func node(cluster string, slots, busy int, mem int64, s vicinity.Speeds) api.NodeInfo {
	return api.NodeInfo{
		Member: vicinity.Member{Name: "n", Slots: slots, Memory: mem, Speeds: s}, Cluster: cluster, Told: time.Unix(1, 0), Busy: busy,
	}
}

// some is a network of two sites and one node that nobody knows much about.
func some() []api.NodeInfo {
	delft := func(busy int, power int64) api.NodeInfo {
		return node("delft", 4, busy, 16<<30-power<<12, vicinity.Speeds{Clock: 2400, Power: power, Bandwidth: 1000})
	}
	list := []api.NodeInfo{delft(1, 1030), delft(0, 1010), delft(4, 1060)}
	for range 2 {
		n := node(`a "site"\`, 64, 0, 256<<30, vicinity.Speeds{})
		n.GPUs = 2
		list = append(list, n)
	}
	list[4].State = "paused"
	list = append(list, delft(2, 1100))
	silent := node("", 1, 0, 512<<20, vicinity.Speeds{})
	silent.Told = time.Time{}
	list = append(list, silent)
	ms := func(n float64) codec.Duration { return codec.Duration(n * float64(time.Millisecond)) }
	list[0].Distances = []api.Distance{
		{From: "delft", To: "delft", RTT: ms(0.2)}, {From: `a "site"\`, To: "delft", RTT: ms(9.1)}, {From: `a "site"\`, To: `a "site"\`, RTT: ms(0.12)},
		{From: "far", To: "delft", RTT: ms(140)}, {From: "far", To: "far", RTT: 0},
	}
	return list
}

const begin = `# 7 nodes: 73 of 144 slots free; not known of 1 node.

[[offer]]  # 1 node of cluster "delft", 2 of 4 slots free
cluster = "delft"
nodes = 1
slots = 4            # of each node
mem = "15.9GiB"
clock = "2.4GHz"
power = 1100
bandwidth = "1Gbit"
rtt = {delft = "0.20ms", "a \"site\"\\" = "9.1ms", far = "140ms"} # to its own nodes, and those of other clusters

[[offer]]  # 3 nodes of cluster "delft", 7 of 12 slots free
`

// Nodes of a cluster that are alike are one offer, and a paused node has no slot that is free.
func TestOffers(t *testing.T) {
	var b bytes.Buffer
	if err := offers.Write(&b, some()); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(b.String(), begin) {
		t.Errorf("got:\n%s\nwant first:\n%s", &b, begin)
	}
	var file struct {
		Offer []struct {
			Cluster, Mem, Clock, Bandwidth string
			Nodes, Slots, GPUs             int
			Power                          int64
			RTT                            map[string]string
		}
	}
	dec := toml.NewDecoder(bytes.NewReader(b.Bytes()))
	if err := dec.DisallowUnknownFields().Decode(&file); err != nil {
		t.Fatalf("%v:\n%s", err, &b)
	}
	var got []string
	for _, o := range file.Offer {
		got = append(got, fmt.Sprintf("%s: %d of %d slots, %s, %d GPUs, %q, %d, %q, %d distances", o.Cluster, o.Nodes, o.Slots, o.Mem, o.GPUs, o.Clock, o.Power, o.Bandwidth, len(o.RTT)))
		for to, text := range o.RTT {
			if d, err := time.ParseDuration(text); err != nil || d <= 0 {
				t.Errorf("to %s: %q, %v", to, text, err)
			}
		}
	}
	want := `delft: 1 of 4 slots, 15.9GiB, 0 GPUs, "2.4GHz", 1100, "1Gbit", 3 distances
delft: 3 of 4 slots, 15.9GiB, 0 GPUs, "2.4GHz", 1010, "1Gbit", 3 distances
a "site"\: 2 of 64 slots, 256GiB, 2 GPUs, "", 0, "", 2 distances
: 1 of 1 slots, 512MiB, 0 GPUs, "", 0, "", 0 distances`
	if text := strings.Join(got, "\n"); text != want {
		t.Errorf("got:\n%s\nwant:\n%s\nof:\n%s", text, want, &b)
	}
	if !strings.Contains(b.String(), "64 of 128 slots free") {
		t.Errorf("the slots of a paused node count as free:\n%s", &b)
	}
}

// What is written as memory, --mem reads as no more than there is, and not much less.
func TestMemory(t *testing.T) {
	for _, n := range []int64{1 << 20, 5<<20 + 7, 1<<30 - 1, 1 << 30, 16751513600, 33 << 30, 3 << 40, 1 << 60} {
		var b bytes.Buffer
		if err := offers.Write(&b, []api.NodeInfo{node("c", 1, 0, n, vicinity.Speeds{})}); err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(b.String(), `mem = "`)
		word, _, _ := strings.Cut(rest, `"`)
		if got, err := units.ParseBytes(word); err != nil || got > n || float64(got) < 0.9*float64(n) {
			t.Errorf("%d is %q, which is %d, %v", n, word, got, err)
		}
	}
}

func TestNoNodes(t *testing.T) {
	var b bytes.Buffer
	if err := offers.Write(&b, nil); err != nil || b.String() != "# 0 nodes: 0 of 0 slots free.\n" {
		t.Errorf("%q, %v", &b, err)
	}
}
