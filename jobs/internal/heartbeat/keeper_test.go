package heartbeat

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"zorilla/internal/seeds"
	"zorilla/jobs"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/internal/wire/wiretest"
	"zorilla/jobs/pmi"
	"zorilla/vicinity"
)

// world is some nodes, with a network that delays, loses and cuts.
type world struct {
	t     *testing.T
	ctx   context.Context
	draw  *rand.Rand
	loss  float64
	id    wire.Gang
	nodes []vicinity.ID
	ranks [][]int // of each node

	mu      sync.Mutex
	keepers []*Keeper
	lives   []context.Context
	ends    []context.CancelFunc
	cut     map[vicinity.ID]bool
	gone    map[vicinity.ID]bool // nodes that have nothing of the gang any more
	lost    map[vicinity.ID]string
	failed  map[vicinity.ID]bool // that is because a rank has failed
	codes   map[int]int          // with which ranks end, if not 0
	servers []*pmi.Server
	conns   map[int]net.Conn // of ranks
}

func newWorld(t *testing.T, seed uint64, nodes, each int) *world {
	ctx, cancel := context.WithCancel(t.Context())
	w := &world{t: t, ctx: ctx, lives: make([]context.Context, nodes), ends: make([]context.CancelFunc, nodes), draw: rand.New(rand.NewPCG(seed, 0)), id: wire.Gang{Job: wiretest.Job, Epoch: 1},
		cut: map[vicinity.ID]bool{}, gone: map[vicinity.ID]bool{}, lost: map[vicinity.ID]string{}, failed: map[vicinity.ID]bool{}, codes: map[int]int{}, conns: map[int]net.Conn{}}
	for n := range nodes {
		w.nodes = append(w.nodes, jobtest.Node(n))
		w.ranks = append(w.ranks, nil)
		for range each {
			w.ranks[n] = append(w.ranks[n], len(w.servers))
			w.servers = append(w.servers, nil)
		}
		w.keepers = append(w.keepers, nil)
		w.start(n)
	}
	t.Cleanup(cancel)
	return w
}

// start begins a life of a node.
func (w *world) start(n int) {
	id := w.nodes[n]
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ends[n] != nil {
		w.ends[n]()
	}
	w.lives[n], w.ends[n] = context.WithCancel(w.ctx)
	w.keepers[n] = &Keeper{Self: id, Go: func(f func()) { go f() }, Has: func(wire.Gang) bool { w.mu.Lock(); defer w.mu.Unlock(); return !w.gone[id] }, Name: func(id vicinity.ID) string { return fmt.Sprint("node ", indexOf(w.nodes, id)) },
		Send: func(ctx context.Context, to vicinity.ID, b *wire.Beat) (wire.BeatAnswer, error) {
			return w.send(ctx, id, to, b)
		},
		Lost: func(_ wire.Gang, why string, failed bool) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.lost[id], w.failed[id] = why, failed
			for _, rank := range w.ranks[n] { // as the node ends them
				_ = w.conns[rank].Close()
			}
		}}
}

func indexOf(all []vicinity.ID, id vicinity.ID) int {
	for i := range all {
		if all[i] == id {
			return i
		}
	}
	return -1
}

var errLost = errors.New("nothing comes back")

func (w *world) send(ctx context.Context, from, to vicinity.ID, b *wire.Beat) (a wire.BeatAnswer, err error) {
	if err := b.Check(); err != nil {
		w.t.Errorf("%+v: %v", b, err)
	}
	travel := func() bool {
		w.mu.Lock()
		lost := w.cut[from] || w.cut[to]
		pause := time.Duration(w.draw.IntN(30)) * time.Millisecond
		if w.draw.Float64() < w.loss { // it is sent again
			pause += time.Duration(200+w.draw.IntN(200)) * time.Millisecond
		}
		w.mu.Unlock()
		if lost {
			<-ctx.Done()
			return false
		}
		select {
		case <-time.After(pause):
			return true
		case <-ctx.Done():
			return false
		}
	}
	if !travel() {
		return a, errLost
	}
	w.mu.Lock()
	k := w.keepers[indexOf(w.nodes, to)]
	w.mu.Unlock()
	if a, err = k.Beat(ctx, from, b); err == nil && !travel() {
		err = errLost
	}
	if err := a.Check(); err != nil {
		w.t.Errorf("%+v: %v", a, err)
	}
	return a, err
}

// follow has a node follow a rank, and returns when it does not any more.
func (w *world) follow(n, rank int, again bool) {
	ours, theirs := net.Pipe()
	go func() {
		w.servers[rank].Relay(ours)
		ours.Close()
	}()
	w.mu.Lock()
	k, ctx := w.keepers[n], w.lives[n]
	w.mu.Unlock()
	r := Rank{Gang: w.id, Rank: rank, Nodes: w.nodes, Local: w.ranks[n], Link: pmi.NewLink(theirs), Again: again}
	k.Follow(ctx, r)()
	theirs.Close()
	if ctx.Err() != nil {
		return
	}
	why := ""
	if code := w.codes[rank]; code != 0 {
		why = fmt.Sprint("it ended with ", code)
	}
	k.Left(ctx, r, why, why != "")
}

// run runs a program for each rank, and returns when all have ended.
func (w *world) run(program func(rank int, say func(string) string)) {
	var all sync.WaitGroup
	for n, ranks := range w.ranks {
		for _, rank := range ranks {
			theirs, ours := net.Pipe()
			w.conns[rank] = theirs
			w.servers[rank] = pmi.NewServer(pmi.Place{Rank: rank, Size: len(w.servers), Name: "k"}, ours)
			all.Go(func() {
				go func() {
					w.servers[rank].Run()
					ours.Close()
				}()
				go w.follow(n, rank, false)
				in := bufio.NewReader(theirs)
				program(rank, func(line string) string {
					fmt.Fprintln(theirs, line)
					answer, _ := in.ReadString('\n')
					return answer
				})
				theirs.Close()
			})
		}
	}
	all.Wait()
}

// meetings is a program that meets the others so many times, and finds what they put.
func (w *world) meetings(times int) func(int, func(string) string) {
	return func(rank int, say func(string) string) {
		for i := range times {
			say(fmt.Sprintf("cmd=put kvsname=k key=%d-%d value=v", i, rank))
			if got := say("cmd=barrier_in"); got != "cmd=barrier_out\n" {
				w.mu.Lock()
				if len(w.lost) == 0 {
					w.t.Errorf("rank %d, barrier %d: %q", rank, i, got)
				}
				w.mu.Unlock()
				return
			}
			for other := range w.servers {
				if got := say(fmt.Sprintf("cmd=get kvsname=k key=%d-%d", i, other)); got != "" && !strings.Contains(got, "rc=0") {
					w.t.Errorf("rank %d misses what %d put before barrier %d: %q", rank, other, i, got)
				}
			}
		}
	}
}

// idle waits until nothing of the gang is anywhere.
func (w *world) idle() {
	w.t.Helper()
	time.Sleep(First + Linger + 2*Silence)
	synctest.Wait()
	for i, k := range w.keepers {
		k.mu.Lock()
		if len(k.hubs)+len(k.members) > 0 {
			w.t.Errorf("node %d keeps %d hubs and %d members", i, len(k.hubs), len(k.members))
		}
		k.mu.Unlock()
	}
}

// All ranks meet, also where much of what is said is lost.
func TestRanksMeet(t *testing.T) {
	for _, loss := range []float64{0, 0.2} {
		seeds.Random(t, func(t *testing.T, seed uint64) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, seed, 3, 2)
				w.loss = loss
				w.run(w.meetings(10))
				w.mu.Lock()
				if len(w.lost) > 0 && loss == 0 {
					t.Errorf("lost: %v", w.lost)
				}
				w.mu.Unlock()
				w.idle()
			})
		})
	}
}

// A node that is cut off is lost to the others, and they to it, soon enough to end ranks
// within two seconds, which takes participant.GangGrace.
func TestNodeIsCutOff(t *testing.T) {
	for i := range 30 {
		synctest.Test(t, func(t *testing.T) {
			n, w := i%3, newWorld(t, 1, 3, 2)
			stop := make(chan struct{})
			go func() {
				time.Sleep(5*time.Second + time.Duration(i)*10*time.Millisecond)
				w.mu.Lock()
				w.cut[w.nodes[n]] = true
				w.mu.Unlock()
				time.Sleep(Silence + 50*time.Millisecond)
				synctest.Wait()
				w.mu.Lock()
				for i, id := range w.nodes {
					if !strings.HasPrefix(w.lost[id], "no word from node ") {
						t.Errorf("node %d is cut off, and soon after %v node %d says %q", n, Silence, i, w.lost[id])
					}
				}
				w.mu.Unlock()
				close(stop)
			}()
			w.run(func(_ int, say func(string) string) {
				say("cmd=init pmi_version=1")
				say("cmd=barrier_in")
				<-stop
			})
			w.idle()
		})
	}
}

// Whoever waits for a rank that has ended is told so.
func TestRankEndsWhileOthersWait(t *testing.T) {
	for i := range 6 {
		synctest.Test(t, func(t *testing.T) {
			gone, w := i, newWorld(t, 1, 2, 2)
			if i >= 4 { // alone at its node
				gone, w = i-4, newWorld(t, 1, 2, 1)
			}
			stop := make(chan struct{})
			go func() {
				time.Sleep(3 * Silence)
				w.cancelAll(stop)
			}()
			w.run(func(rank int, say func(string) string) {
				if rank == gone {
					return
				}
				go say("cmd=barrier_in")
				<-stop
			})
			w.mu.Lock()
			for n, id := range w.nodes {
				if alone := len(w.ranks[n]) == 1 && n == gone; !alone && !strings.Contains(w.lost[id], "ended") {
					t.Errorf("rank %d has ended, and %s says %q", gone, id, w.lost[id])
				}
			}
			w.mu.Unlock()
		})
	}
}

func (w *world) cancelAll(stop chan struct{}) {
	synctest.Wait()
	close(stop)
}

// A node that is started again goes on with its ranks, where they are.
func TestNodeIsStartedAgain(t *testing.T) {
	for n := range 3 {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 1, 3, 1)
			go func() {
				for range 5 {
					time.Sleep(700 * time.Millisecond)
					w.start(n)
					go w.follow(n, w.ranks[n][0], true)
				}
			}()
			w.run(func(rank int, say func(string) string) {
				for i := range 4 {
					time.Sleep(time.Duration(rank+1) * 300 * time.Millisecond)
					if got := say("cmd=barrier_in"); got != "cmd=barrier_out\n" {
						t.Errorf("rank %d, barrier %d: %q", rank, i, got)
					}
				}
			})
		})
	}
}

// A node that never begins is not waited for without end.
func TestNodeDoesNotBegin(t *testing.T) {
	now := time.Unix(1e9, 0)
	nodes := []vicinity.ID{jobtest.Node(0), jobtest.Node(1)}
	h := NewHub(now, nodes, func(id vicinity.ID) string { return "node " + string(id) }, false)
	id := wire.Gang{Job: wiretest.Job, Epoch: 1}
	for ; h.Lost() == ""; now = now.Add(Hold) {
		h.Beat(now, nodes[0], &wire.Beat{Gang: id})
		h.Tick(now)
		if now.Sub(time.Unix(1e9, 0)) > 2*First {
			t.Fatal("it is waited for")
		}
	}
	m := NewMember(now, id, []int{1}, "node 0")
	lost := func() string { why, _ := m.Lost(); return why }
	if m.Tick(now.Add(First)); lost() != "" {
		t.Errorf("too early: %s", lost())
	}
	if m.Tick(now.Add(First + 1)); lost() == "" {
		t.Error("a hub that does not begin is waited for")
	}
}

// Beats of strangers, and of gangs that are not here, are refused.
func TestBeatsOfStrangers(t *testing.T) {
	w := newWorld(t, 1, 1, 1)
	k := w.keepers[0]
	if _, err := k.Beat(t.Context(), w.nodes[0], &wire.Beat{Gang: w.id}); err == nil {
		t.Error("a gang that is not here")
	}
	k.hubs = map[wire.Gang]*hub{w.id: {core: NewHub(time.Now(), w.nodes, k.Name, false), news: make(chan struct{})}}
	if _, err := k.Beat(t.Context(), jobtest.Node(7), &wire.Beat{Gang: w.id}); !errors.Is(err, jobs.ErrRefused) {
		t.Errorf("a stranger: %v", err)
	}
}

// beat is one of a member, as the hub has it.
func beat(h *Hub, now time.Time, from vicinity.ID, b wire.Beat) (wire.BeatAnswer, bool) {
	h.Beat(now, from, &b)
	return h.Answer(&b)
}

// A later life of the hub that cannot tell what was put lets nobody pass.
func TestHubThatDoesNotKnow(t *testing.T) {
	now := time.Unix(1e9, 0)
	nodes := []vicinity.ID{jobtest.Node(0), jobtest.Node(1), jobtest.Node(2)}
	id := wire.Gang{Job: wiretest.Job, Epoch: 1}
	for _, order := range [][2]int{{0, 1}, {1, 0}} {
		h := NewHub(now, nodes, func(vicinity.ID) string { return "a node" }, true)
		beats := []wire.Beat{{Gang: id, Passed: 2, Waits: 3}, {Gang: id, Passed: 3}}
		for _, i := range order {
			h.Beat(now, nodes[i], &beats[i])
		}
		if a, _ := h.Answer(&beats[0]); a.Passed == 3 || a.Lost == "" {
			t.Errorf("order %v: %+v", order, a)
		}
	}
	// Who is never heard of may have been done before; not so if somebody waits for it.
	h := NewHub(now, nodes, func(vicinity.ID) string { return "a node" }, true)
	for at := now; at.Before(now.Add(3 * First)); at = at.Add(Hold) {
		if a, _ := beat(h, at, nodes[0], wire.Beat{Gang: id, Passed: 3}); a.Lost != "" {
			t.Fatalf("after %v: %s", at.Sub(now), a.Lost)
		}
		h.Tick(at)
	}
}

// A beat that another one has overtaken changes nothing.
func TestBeatsThatAreOvertaken(t *testing.T) {
	now := time.Unix(1e9, 0)
	nodes := []vicinity.ID{jobtest.Node(0), jobtest.Node(1)}
	id := wire.Gang{Job: wiretest.Job, Epoch: 1}
	h := NewHub(now, nodes, func(vicinity.ID) string { return "a node" }, false)
	h.Beat(now, nodes[0], &wire.Beat{Gang: id, Sent: 2, Waits: 1})
	h.Beat(now, nodes[0], &wire.Beat{Gang: id, Sent: 1})
	if a, news := beat(h, now, nodes[1], wire.Beat{Gang: id, Sent: 1, Waits: 1}); a.Passed != 1 || !news {
		t.Errorf("a late beat made the hub forget that a node waits: %+v", a)
	}
}

// A node that died when it had let some of its ranks pass lets the others pass when it is
// back, also if those wait again, or do not.
func TestNodeDiesBetweenItsRanks(t *testing.T) {
	now := time.Unix(1e9, 0)
	nodes := []vicinity.ID{jobtest.Node(0)}
	id := wire.Gang{Job: wiretest.Job, Epoch: 1}
	for _, again := range []bool{false, true} {
		h := NewHub(now, nodes, func(vicinity.ID) string { return "a node" }, false)
		beat(h, now, nodes[0], wire.Beat{Gang: id, Waits: 1, Puts: []pmi.Put{{Key: "k", Value: "v"}}})
		m := NewMember(now, id, []int{0, 1}, "a node")
		m.Waits(1, pmi.Barrier{Number: 1})
		if again {
			m.Waits(0, pmi.Barrier{Number: 2})
		}
		for range 3 {
			b := m.Beat()
			if err := b.Check(); err != nil {
				t.Fatal(err)
			}
			a, _ := beat(h, now, nodes[0], b)
			if p, ranks := m.Answered(now, &b, &a); len(ranks) > 0 {
				if p.Number != 1 || len(p.Puts) != 1 || len(ranks) != 1 || ranks[0] != 1 {
					t.Errorf("again %v: %v pass by %+v", again, ranks, p)
				}
				again = false
				m = nil
				break
			}
		}
		if m != nil {
			t.Errorf("the rank waits for ever")
		}
	}
}
