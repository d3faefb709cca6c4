package flood

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"zorilla/vicinity"
)

// simulation runs bare cores on a graph with a delay per link.
type simulation struct {
	cores  []*Core
	index  map[vicinity.ID]int
	links  []map[int]time.Duration
	heard  [][]Message // by node
	copies int
	queue  simQueue
}

type simCopy struct {
	at       time.Time
	seq      int
	from, to int
	packet   []byte
}

type simQueue []simCopy

func (q simQueue) Len() int { return len(q) }
func (q simQueue) Less(i, j int) bool {
	return q[i].at.Before(q[j].at) || q[i].at.Equal(q[j].at) && q[i].seq < q[j].seq
}
func (q simQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *simQueue) Push(x any)   { *q = append(*q, x.(simCopy)) }
func (q *simQueue) Pop() any {
	old := *q
	x := old[len(old)-1]
	*q = old[:len(old)-1]
	return x
}

func newSimulation(n int) *simulation {
	s := &simulation{index: map[vicinity.ID]int{}, links: make([]map[int]time.Duration, n), heard: make([][]Message, n)}
	for i := range n {
		s.index[node(i)] = i
		s.links[i] = map[int]time.Duration{}
		s.cores = append(s.cores, NewCore(Config{
			Self: node(i),
			Neighbours: func() []vicinity.ID {
				var ids []vicinity.ID
				for k := range n { // in order, so that runs are alike
					if _, ok := s.links[i][k]; ok {
						ids = append(ids, node(k))
					}
				}
				return ids
			},
			Check: func(vicinity.ID, []byte) error { return nil },
			Rand:  rand.New(rand.NewPCG(uint64(i), 7)),
		}))
	}
	return s
}

func (s *simulation) link(a, b int, delay time.Duration) {
	s.links[a][b], s.links[b][a] = delay, delay
}

// flood runs one flood to its end.
func (s *simulation) flood(t *testing.T, origin, radius int) {
	t.Helper()
	now := begin
	_, out, err := s.cores[origin].Start(now, radius, time.Minute, []byte("advertisement"))
	if err != nil {
		t.Fatal(err)
	}
	s.spread(t, now, origin, out)
}

// spread sends what a core has put out, and all that follows from it.
func (s *simulation) spread(t *testing.T, now time.Time, from int, out Out) {
	t.Helper()
	s.send(now, from, out)
	for len(s.queue) > 0 {
		c := heap.Pop(&s.queue).(simCopy)
		out := s.cores[c.to].Receive(c.at, 0, node(c.from), c.packet)
		if out.Err != nil {
			t.Fatal(out.Err)
		}
		if out.Deliver != nil {
			s.heard[c.to] = append(s.heard[c.to], *out.Deliver)
		}
		s.send(c.at, c.to, out)
	}
}

func (s *simulation) send(now time.Time, from int, out Out) {
	for _, id := range out.To {
		to := s.index[id]
		s.copies++
		heap.Push(&s.queue, simCopy{now.Add(s.links[from][to]), s.copies, from, to, out.Packet})
	}
}

// distances is the plain breadth-first twin.
func (s *simulation) distances(origin int) map[int]int {
	dist := map[int]int{origin: 0}
	for queue := []int{origin}; len(queue) > 0; queue = queue[1:] {
		for k := range s.links[queue[0]] {
			if _, ok := dist[k]; !ok {
				dist[k] = dist[queue[0]] + 1
				queue = append(queue, k)
			}
		}
	}
	return dist
}

func (s *simulation) check(t *testing.T, origin, radius int) (reached int) {
	t.Helper()
	dist := s.distances(origin)
	for i := range s.cores {
		d, connected := dist[i]
		want := 0
		if connected && d > 0 && d <= radius {
			want = 1
			reached++
		}
		if len(s.heard[i]) != want {
			t.Fatalf("radius %d: node %d, %d links away, heard %d copies, want %d", radius, i, d, len(s.heard[i]), want)
		}
	}
	var sum Stats
	for _, c := range s.cores {
		x := c.Stats()
		sum.Received += x.Received
		sum.Sent += x.Sent
		sum.Forwarded += x.Forwarded
		sum.Delivered += x.Delivered
		sum.Duplicates += x.Duplicates
	}
	if sum.Delivered != uint64(reached) || sum.Sent+sum.Forwarded != uint64(s.copies) ||
		sum.Received != uint64(s.copies) || sum.Delivered+sum.Duplicates != sum.Received {
		t.Fatalf("%d copies, %d nodes reached, counted %+v", s.copies, reached, sum)
	}
	return reached
}

// "All nodes with a distance of two or less from the origin of the flood have
// received the message", for any radius, whatever the order of arrival.
func TestEveryNodeWithinTheRadiusHearsItOnce(t *testing.T) {
	const n = 1000
	for seed := range uint64(3) {
		for _, radius := range []int{1, 2, 3, 5, 32} {
			t.Run(fmt.Sprintf("seed=%d/radius=%d", seed, radius), func(t *testing.T) {
				rnd := rand.New(rand.NewPCG(seed, uint64(radius)))
				s := newSimulation(n)
				for i := range n - 10 { // ten nodes are alone
					for range 3 { // near links
						if k := i + 1 + rnd.IntN(20); k < n-10 {
							s.link(i, k, time.Duration(1+rnd.IntN(100))*time.Millisecond)
						}
					}
					if rnd.IntN(2) == 0 { // far links
						if k := rnd.IntN(n - 10); k != i {
							s.link(i, k, time.Duration(1+rnd.IntN(1000))*time.Millisecond)
						}
					}
				}
				origin := rnd.IntN(n - 10)
				s.flood(t, origin, radius)
				reached := s.check(t, origin, radius)
				t.Logf("%d nodes reached with %d copies", reached, s.copies)
			})
		}
	}
}

// The copy with hops to spare comes last: 0-4-3 is short and slow, 0-1-2-3 is
// long and fast. Without the best TTL node 5 would never hear of it.
func TestSlowShortPathAfterFastLongPath(t *testing.T) {
	s := newSimulation(6)
	s.link(0, 1, time.Millisecond)
	s.link(1, 2, time.Millisecond)
	s.link(2, 3, time.Millisecond)
	s.link(0, 4, time.Millisecond)
	s.link(4, 3, time.Second)
	s.link(3, 5, time.Millisecond)
	s.flood(t, 0, 3)
	if m := s.heard[3][0]; m.Hops != 3 || m.TTL != 1 {
		t.Fatalf("node 3 first heard %+v: the test does not test", m)
	}
	if s.check(t, 0, 3) != 5 {
		t.Fatal("node 5 was not reached")
	}
}
