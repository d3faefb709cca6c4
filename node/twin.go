package node

import (
	"bytes"
	"cmp"
	"context"
	crand "crypto/rand"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"zorilla/internal/codec"
	"zorilla/internal/portion"
	"zorilla/jobs/agent"
	"zorilla/node/gossip"
	"zorilla/node/trust"
	"zorilla/vicinity"
)

// pathTwin is where a node asks whoever may be its twin, another node with its
// identity, and those who may know one.
const pathTwin = agent.PeerPrefix + "twin"

const (
	twinWithin = 3 * time.Second // for all that are asked
	twinEnough = 3               // so many members that know of no twin are believed,
	twinRest   = time.Second     // and the others have so long
	twinPause  = 2 * time.Second // after a look at what others say
	maxTwins   = 128             // addresses that are asked
	maxTwinAsk = 4 << 10         // bytes of a question or an answer
)

// incarnation is one process with a node's identity, as another one sees it.
type incarnation struct {
	Started int64  `json:"s"` // nanoseconds since 1970, by its own clock
	Settled bool   `json:"d"` // it has looked for twins and begun its work
	Nonce   []byte `json:"n"` // decides between two that began together
}

// yields reports whether this incarnation has to end, rather than the other.
func (l incarnation) yields(to incarnation) bool {
	if l.Settled != to.Settled {
		return !l.Settled
	}
	return cmp.Or(cmp.Compare(l.Started, to.Started), bytes.Compare(l.Nonce, to.Nonce)) >= 0
}

// twinAsk is the question. Whoever gets a challenge of its own has met itself.
type twinAsk struct {
	Challenge   []byte      `json:"c"`
	Incarnation incarnation `json:"l"`
}

// twinTold is the answer: to a node of the same identity the incarnation that it has
// met, to others where a node of theirs is known.
type twinTold struct {
	Self        bool         `json:"me,omitempty"`
	Incarnation *incarnation `json:"l,omitempty"`
	At          []string     `json:"a,omitempty"`
}

// twins finds out whether another node has this one's identity. Only a node
// that has proven so in a TLS handshake, with the key, counts.
type twins struct {
	self  vicinity.ID
	state string // directory, for the way out
	peers *peers
	known func(vicinity.ID) []string // where a member is
	log   zerolog.Logger

	hints chan []string // addresses at which others say that this node is
	over  chan error    // why this node has to go

	mu          sync.Mutex // guards what follows
	incarnation incarnation
	asked       map[string]bool // challenges on their way
	told        bool            // of a twin that has to go
}

func newTwins(self vicinity.ID, state stateDir, started time.Time, p *peers, log zerolog.Logger) *twins {
	t := &twins{
		self: self, state: string(state), peers: p, log: log, hints: make(chan []string, 1), over: make(chan error, 1),
		incarnation: incarnation{Started: started.UnixNano(), Nonce: make([]byte, 16)}, asked: map[string]bool{},
		known: func(id vicinity.ID) []string {
			m, _ := p.overlay.Member(id)
			return m.Addrs
		},
	}
	crand.Read(t.incarnation.Nonce)
	return t
}

// hint takes addresses at which this node is said to be. It does not block.
func (t *twins) hint(addrs []string) {
	select {
	case t.hints <- addrs:
	default: // one is being looked at, and they come again
	}
}

// alone returns an error if a node with this one's identity is alive at one of
// the addresses or where those that are there know one: this node, which is the
// newer, must not begin then.
func (t *twins) alone(ctx context.Context, addrs []string) error {
	t.look(ctx, addrs)
	select {
	case err := <-t.over:
		return err
	default:
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.incarnation.Settled = true
	return nil
}

// watch looks at what others say until ctx ends or this node has to go.
func (t *twins) watch(ctx context.Context) error {
	pause := time.NewTimer(0)
	defer pause.Stop()
	hints := t.hints
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-t.over:
			return err
		case <-pause.C:
			hints = t.hints
		case addrs := <-hints:
			t.look(ctx, addrs)
			hints = nil
			pause.Reset(twinPause)
		}
	}
}

// look asks at all of the addresses at once, and where those that answer know
// this node to be.
func (t *twins) look(ctx context.Context, addrs []string) {
	ctx, cancel := context.WithTimeout(ctx, twinWithin)
	defer cancel()
	rest := time.Now().Add(twinRest)
	asked, members := map[string]bool{}, 0
	answers := make(chan twinTold)
	open := 0
	for {
		for _, addr := range addrs {
			if asked[addr] || len(asked) >= maxTwins {
				continue
			}
			asked[addr] = true
			open++
			go func() { answers <- t.ask(ctx, addr) }()
		}
		if open == 0 {
			return
		}
		told := <-answers
		open--
		if addrs = told.At; told.At != nil {
			if members++; members == twinEnough {
				timer := time.AfterFunc(time.Until(rest), cancel)
				defer timer.Stop()
			}
		}
	}
}

// ask asks whoever is at the address. The answer is empty if nobody is.
func (t *twins) ask(ctx context.Context, addr string) (told twinTold) {
	challenge := make([]byte, 16)
	crand.Read(challenge)
	t.mu.Lock()
	t.asked[string(challenge)] = true
	question := codec.MustMarshal(twinAsk{challenge, t.incarnation})
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.asked, string(challenge))
	}()
	tr := t.peers.transport(gossip.HTTP2)
	tr.DialTLSContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return t.peers.overlay.DialPeer(ctx, "", []string{addr}, gossip.HTTP2)
	}
	defer tr.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://twin"+pathTwin, bytes.NewReader(question))
	if err != nil {
		return twinTold{}
	}
	resp, err := tr.RoundTrip(req)
	if err != nil {
		return twinTold{}
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxTwinAsk))
	if err != nil || resp.StatusCode != http.StatusOK || resp.TLS == nil || codec.Unmarshal(b, &told) != nil {
		return twinTold{}
	}
	switch id, err := trust.PeerID(*resp.TLS); {
	case err != nil:
		return twinTold{}
	case id != t.self:
		return twinTold{At: append([]string{}, told.At...)}
	case !told.Self && told.Incarnation != nil:
		t.met(*told.Incarnation, addr)
	}
	return twinTold{}
}

// met is called with the incarnation of a node that has this one's key.
func (t *twins) met(other incarnation, addr string) {
	t.mu.Lock()
	yields, told := t.incarnation.yields(other), t.told
	t.told = true
	t.mu.Unlock()
	switch {
	case yields:
		select {
		case t.over <- fmt.Errorf("%w (at %s): stop that one or choose another --state-dir; "+
			"to make a copy a node of its own remove identity.key, journal.db and work in %s",
			vicinity.ErrTwin, addr, t.state):
		default:
		}
	case !told:
		t.log.Warn().Msgf("%v (at %s): that one began later and has to stop", vicinity.ErrTwin, addr)
	}
}

// ServeHTTP answers other nodes.
func (t *twins) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var ask twinAsk
	b, err := portion.Read(w, r, maxTwinAsk)
	if err != nil || codec.Unmarshal(b, &ask) != nil || r.Method != http.MethodPost {
		http.Error(w, "want a question about a twin", http.StatusBadRequest)
		return
	}
	told := twinTold{}
	if id := asker(r.Context()); id != t.self {
		told.At = t.known(id)
	} else {
		t.mu.Lock()
		mine := t.incarnation
		told.Self, told.Incarnation = t.asked[string(ask.Challenge)], &mine
		t.mu.Unlock()
		// A question of this node's own that was held up on its way comes when the
		// challenge is forgotten. A copy of the process, whose incarnation is the same,
		// learns from the answer that it is not alone.
		if !told.Self && !bytes.Equal(ask.Incarnation.Nonce, mine.Nonce) {
			host, _, _ := net.SplitHostPort(r.RemoteAddr)
			t.met(ask.Incarnation, host)
		}
	}
	w.Write(codec.MustMarshal(told))
}
