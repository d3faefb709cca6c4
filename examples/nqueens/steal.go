package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"zorilla/examples/peers"
)

// message is what ranks say to each other. Who made the connection asks.
type message struct {
	Op  string    `json:"op"`
	At  placement `json:"at,omitempty"`
	N   int       `json:"n,omitempty"`
	Sum uint64    `json:"sum,omitempty"`
}

const (
	opSteal  = "steal"  // wants a task; answered by one, or by none
	opTask   = "task"   // At; the one answer that there is
	opNone   = "none"   //
	opResult = "result" // Sum of At, which was taken on this connection
	opKnown  = "known"  // Sum of At, which was taken of a rank that is lost
	opOver   = "over"   // Sum of all
	opAlive  = "alive"  //
)

const (
	aliveEvery = 2 * time.Second
	idle       = 2 * time.Millisecond
	// bored is after which a rank that finds no work asks to be given back: by then it has
	// found all others.
	bored = 3 * time.Second
	// looksEvery is how often a rank thinks about that, and rank 0 about asking for more.
	looksEvery = 250 * time.Millisecond
	// alone is after which a rank without work ends that does not find rank 0: it came too late
	// to hear that all is over. If rank 0 was only lost, its next attempt does without.
	alone = 30 * time.Second
)

// thief is a rank that counts by stealing: it does what it has, and asks others when it has
// nothing. The one with rank 0 has the whole board to begin with.
type thief struct {
	tree   *tree
	place  peers.Place
	stdout io.Writer
	over   chan struct{} // closed when the sum is known
	once   sync.Once
	sum    uint64

	mu     sync.Mutex
	others map[int]*victim // by rank
	seen   time.Time       // when rank 0 was there
	worked time.Time       // when there was something to do, or nobody to ask for it
}

// victim is another rank, of which tasks may be taken.
type victim struct {
	*peers.Conn
	answers chan message
	lost    chan struct{}
}

// steal counts on all ranks of a malleable job. The sum is rank 0's to print.
func steal(n int, p peers.Place, stdout io.Writer) error {
	t := &thief{tree: newTree(n), place: p, stdout: stdout, over: make(chan struct{}), others: map[int]*victim{}, seen: time.Now(), worked: time.Now()}
	group, err := peers.Join(p, t.serve)
	if err != nil {
		return err
	}
	defer group.Leave()
	fmt.Fprintf(stdout, "rank %d: attempt %d listens at %s\n", p.Rank, p.Attempt, group.Addr())
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go group.Watch(ctx, t.meet)
	if p.Rank == 0 {
		t.tree.add(placement{}, t.end)
	}
	go t.resize(ctx)
	var all sync.WaitGroup
	for range p.Slots {
		all.Go(t.work)
	}
	all.Wait()
	select {
	case <-t.over:
	default:
		fmt.Fprintf(stdout, "rank %d: rank 0 is not there any more\n", p.Rank)
		return nil
	}
	for _, v := range t.victims() { // so that they end, too, whoever heard it first
		_ = v.Send(message{Op: opOver, Sum: t.sum})
	}
	fmt.Fprintf(stdout, "rank %d: %+v\n", p.Rank, t.tree.statistics())
	if p.Rank == 0 {
		fmt.Fprintf(stdout, "%d queens: %d solutions\n", n, t.sum)
	}
	return nil
}

// end notes the sum of all.
func (t *thief) end(sum uint64) {
	t.once.Do(func() {
		t.sum = sum
		close(t.over)
	})
}

// work does tasks until all is over.
func (t *thief) work() {
	for {
		select {
		case <-t.over:
			return
		default:
		}
		if t.tree.step() || t.rob() {
			t.busy()
			continue
		}
		if t.forsaken() {
			return
		}
		time.Sleep(idle)
	}
}

// forsaken reports whether rank 0 has not been there for long.
func (t *thief) forsaken() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, there := t.others[0]; there {
		t.seen = time.Now()
	}
	return t.place.Rank != 0 && time.Since(t.seen) > alone
}

// busy notes that there is something to do.
func (t *thief) busy() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.worked = time.Now()
}

// resize asks for as many workers as are of use.
func (t *thief) resize(ctx context.Context) {
	for tick := time.NewTicker(looksEvery); ; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if t.place.Rank == 0 {
			t.askForMore()
		} else if t.useless() {
			if _, err := t.place.Resize(0, t.place.Rank); err == nil {
				fmt.Fprintf(t.stdout, "rank %d: finds nothing to do, and is given back\n", t.place.Rank)
			}
		}
	}
}

// useless reports whether a rank has found nothing to do for a while, and nobody waits for
// what it has done. If it is wrong all the same, that is done again.
func (t *thief) useless() bool {
	open, owed := t.tree.load()
	t.mu.Lock()
	defer t.mu.Unlock()
	if open > 0 || owed > 0 || len(t.others) == 0 {
		t.worked = time.Now()
	}
	if time.Since(t.worked) < bored {
		return false
	}
	t.worked = time.Now() // there may have to be so many: it is asked again later
	return true
}

// askForMore asks for all workers that the job may have while there are tasks for them.
func (t *thief) askForMore() {
	open, _ := t.tree.load()
	if open == 0 {
		return
	}
	size, err := t.place.Resize(0)
	if err != nil || size.Wanted == size.Max || open <= 2*size.Have*t.place.Slots {
		return
	}
	if _, err = t.place.Resize(size.Max); err == nil {
		fmt.Fprintf(t.stdout, "rank 0: %d tasks wait: asks for %d workers\n", open, size.Max)
	}
}

// victims are those who are there.
func (t *thief) victims() []*victim {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Values(t.others))
}

// rob takes a task of another rank. It reports whether there was one.
func (t *thief) rob() bool {
	list := t.victims()
	for _, i := range rand.Perm(len(list)) {
		v := list[i]
		if v.Send(message{Op: opSteal}) != nil {
			continue
		}
		select {
		case m := <-v.answers:
			if m.Op != opTask || m.N != t.tree.n || !m.At.fits(m.N) {
				continue
			}
			if t.tree.took(m.At, func(sum uint64) { t.deliver(v, m.At, sum) }) {
				fmt.Fprintf(t.stdout, "rank %d: works for rank %d\n", t.place.Rank, v.Rank)
			}
			return true
		case <-v.lost:
		case <-t.over:
			return false
		}
	}
	return false
}

// deliver tells whose task it was; if that is lost, all others: who divides the same part
// again need not count it.
func (t *thief) deliver(v *victim, at placement, sum uint64) {
	select {
	case <-v.lost:
	default:
		if v.Send(message{Op: opResult, At: at, Sum: sum}) == nil {
			return
		}
	}
	t.tree.know(at, sum)
	for _, other := range t.victims() {
		_ = other.Send(message{Op: opKnown, At: at, Sum: sum})
	}
}

// meet is called with a connection to another rank, for as long as that is there.
func (t *thief) meet(c *peers.Conn) {
	v := &victim{Conn: c, answers: make(chan message), lost: make(chan struct{})}
	defer close(v.lost)
	t.mu.Lock()
	t.others[c.Rank] = v
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.others[c.Rank] == v {
			delete(t.others, c.Rank)
		}
	}()
	for _, known := range t.tree.knows() { // it may have come in the place of who wanted that
		_ = v.Send(message{Op: opKnown, At: known.at, Sum: known.sum})
	}
	go func() {
		for tick := time.NewTicker(aliveEvery); ; {
			if v.Send(message{Op: opAlive}) != nil {
				return
			}
			select {
			case <-tick.C:
			case <-v.lost:
				return
			}
		}
	}()
	for {
		var m message
		if c.Receive(&m) != nil {
			return
		}
		switch m.Op {
		case opTask, opNone:
			select {
			case v.answers <- m:
			case <-t.over:
			}
		}
	}
}

// serve is called with the connection of a rank that asks. What it has taken and not
// counted when it is lost is done again.
func (t *thief) serve(c *peers.Conn) {
	taken := map[string]*task{}
	defer func() {
		for _, k := range taken {
			t.tree.again(k)
		}
	}()
	for {
		var m message
		if c.Receive(&m) != nil {
			return
		}
		answer := message{Op: opAlive}
		switch m.Op {
		case opSteal:
			answer.Op = opNone
			if k := t.tree.give(); k != nil {
				taken[k.at.key()] = k
				answer = message{Op: opTask, N: t.tree.n, At: k.at}
			}
		case opResult:
			if k := taken[m.At.key()]; k != nil {
				delete(taken, m.At.key())
				t.tree.counted(k, m.Sum)
			}
			continue
		case opKnown:
			if m.At.fits(t.tree.n) {
				t.tree.know(m.At, m.Sum)
			}
			continue
		case opOver:
			t.end(m.Sum)
			return
		}
		if c.Send(answer) != nil {
			return
		}
	}
}
