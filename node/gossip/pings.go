package gossip

import (
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
)

// memberlist probes one member each interval: it sends a ping, and if there is
// no answer within the timeout it asks others to ping and calls by TCP, which
// costs thirty times as much; if the interval ends without any answer it tells
// everybody that it suspects the member. What is made for local networks, a
// second and half of it, is too little for round trips that vary up to a second.
const (
	probeInterval = 1250 * time.Millisecond
	probeTimeout  = 750 * time.Millisecond
	// suspicionMult times the interval and the decimal logarithm of the number
	// of members, 1 at least, is how long somebody is suspected, by two, before he
	// is held to be dead: about as long as with one second and 4.
	suspicionMult = 3
	// A ping without an answer is sent again after 1.5 times as long as the answer
	// took last, within these bounds, and once more. Where one packet in ten is
	// lost that leaves one probe in a hundred for the dear way, instead of one in five.
	leastAgain = 250 * time.Millisecond
	mostAgain  = 600 * time.Millisecond
	pingsAgain = 2
	noUDPAfter = 3   // probes in a row that no packet answers: one by chance is common on a busy machine
	maxPing    = 400 // bytes; what is longer carries news, too, and is not sent again
)

// pings sends memberlist's pings again that get no answer, which memberlist
// itself does not. An answer to any of them is one to the first.
type pings struct {
	send func(b []byte, to memberlist.Address)

	mu      sync.Mutex // guards what follows
	waiting map[string]*waiting
	took    map[string]time.Duration // the latest answer of each member
	missed  map[string]int           // probes in a row that a member has answered by TCP alone
}

// waiting is the latest ping to a node.
type waiting struct {
	timer *time.Timer
	pause time.Duration
	again int // how often it was sent again
}

func newPings(send func(b []byte, to memberlist.Address)) *pings {
	return &pings{send: send, waiting: map[string]*waiting{}, took: map[string]time.Duration{}, missed: map[string]int{}}
}

// Sent takes note of a packet with a ping to a node.
func (p *pings) Sent(b []byte, to memberlist.Address) {
	node := to.Name
	if node == "" || len(b) > maxPing {
		return
	}
	b = append([]byte(nil), b...)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.endLocked(node)
	w := &waiting{pause: min(max(leastAgain, p.took[node]*3/2), mostAgain)}
	p.waiting[node] = w
	w.timer = time.AfterFunc(w.pause, func() { p.again(w, b, to) })
}

// again sends a ping again, unless it was answered.
func (p *pings) again(w *waiting, b []byte, to memberlist.Address) {
	node := to.Name
	p.mu.Lock()
	due := p.waiting[node] == w && w.again < pingsAgain
	if due {
		w.again++
		w.timer.Reset(w.pause)
	} else if p.waiting[node] == w {
		delete(p.waiting, node)
	}
	p.mu.Unlock()
	if due {
		p.send(b, to)
	}
}

// Answered says that a probe of a member has succeeded so long after its ping,
// and reports whether that was sent once: if not, it is unknown which was answered.
func (p *pings) Answered(node string, took time.Duration) (once bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.waiting[node]
	p.endLocked(node)
	delete(p.missed, node)
	if once = w == nil || w.again == 0; !once {
		// It is far, or a packet was lost: wait longer, until it is known which.
		took = min(took, max(p.took[node]*3/2, took-time.Duration(w.again)*w.pause))
	}
	p.took[node] = took
	return once
}

// Missed says that a member was reached by TCP after a probe by UDP without an answer, and
// reports whether it has just become one without UDP.
func (p *pings) Missed(node string) (noUDP bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.missed[node]++
	return p.missed[node] == noUDPAfter
}

// NoUDP reports whether a member has answered the latest probes by TCP and not by UDP.
func (p *pings) NoUDP(node string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.missed[node] >= noUDPAfter
}

// Gone says that a node is no member any more.
func (p *pings) Gone(node string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.took, node)
	delete(p.missed, node)
}

// Close ends all that waits.
func (p *pings) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for node := range p.waiting {
		p.endLocked(node)
	}
}

func (p *pings) endLocked(node string) {
	if w := p.waiting[node]; w != nil {
		w.timer.Stop()
		delete(p.waiting, node)
	}
}
