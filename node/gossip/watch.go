package gossip

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"

	"zorilla/internal/codec"
	"zorilla/node/trust"
	"zorilla/vicinity"
)

const (
	maxJoins      = 4 // at the same time
	misplacedWait = 2 * time.Second
	misplacedCalm = time.Minute
	misplacedMany = 20 // after so many introductions it is another node with the same key
	misplacedMore = 5  // introductions after the last complaint: longer than reclaimTime

	// Nodes that start together may miss the announcements of some others. Each exchanges state with a
	// member once more when these have spread, after settled to twice settled.
	settled = 4 * time.Second
)

type joinResult struct {
	addr string
	err  error
}

// watch tells the Handler what happens and joins what is to be joined. It is
// the goroutine that owns the joiner.
func (o *Overlay) watch(ctx context.Context, ml *memberlist.Memberlist) {
	w := watcher{o: o, ml: ml, results: make(chan joinResult, maxJoins)}
	w.joiner = newJoiner(time.Now(), o.cfg.Rand, append(slices.Clone(o.self.Addrs), o.bound.String()), o.cfg.Seeds)
	defer w.joining.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-o.table.wake:
			w.notify()
		case r := <-w.results:
			w.joined(r)
		case addr := <-o.heard:
			w.joiner.Heard(time.Now(), addr)
		case <-o.misplaced:
			w.misplaced(time.Now())
		case <-timer.C:
		}
		timer.Reset(w.start(ctx, time.Now()))
	}
}

type watcher struct {
	o       *Overlay
	ml      *memberlist.Memberlist
	joiner  *joiner
	results chan joinResult
	joining sync.WaitGroup
	busy    int

	check   time.Time // when to exchange state once more after joining; zero = no need
	again   time.Time // when to introduce this node once more; zero = no need
	more    int       // how often after that
	strange int       // introductions since others knew the right address
	noticed time.Time // when others were last seen not to know it
}

// notify passes events on.
func (w *watcher) notify() {
	for _, e := range w.o.table.drain() {
		if e.gone {
			w.joiner.Left(time.Now(), e.Member)
			w.o.log.Info().Str("member", e.ID.Short()).Str("name", e.Name).Msg("a member is gone")
			w.o.cfg.Handler.Leave(e.ID)
			continue
		}
		w.joiner.Joined(e.Member)
		w.o.paths.advertised(e.ID, e.Addrs)
		w.o.log.Info().Str("member", e.ID.Short()).Str("name", e.Name).Str("addr", e.Addrs[0]).Msg("a member is here")
		w.o.cfg.Handler.Join(e.Member)
	}
}

// start begins the joins that are due and returns how long to wait for the
// next ones.
func (w *watcher) start(ctx context.Context, now time.Time) time.Duration {
	if due(w.check, now) {
		w.check = time.Time{}
		if !w.exchange(ctx) {
			w.check = now.Add(settled)
		}
	}
	if due(w.again, now) && w.introduce(ctx) {
		w.again = time.Time{}
		if w.more--; w.more > 0 {
			w.again = now.Add(w.pause())
		}
	}
	wait := time.Hour
	for _, at := range []time.Time{w.check, w.again} {
		if !at.IsZero() {
			wait = min(wait, max(at.Sub(now), 100*time.Millisecond))
		}
	}
	for w.busy < maxJoins {
		addr, wake := w.joiner.Next(now)
		if addr == "" {
			if !wake.IsZero() {
				wait = min(wait, wake.Sub(now))
			}
			break
		}
		w.join(ctx, addr)
	}
	return wait
}

func due(at, now time.Time) bool { return !at.IsZero() && !at.After(now) }

func (w *watcher) join(ctx context.Context, addr string) {
	w.busy++
	w.joining.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, 2*dialTimeout)
		defer cancel()
		w.results <- joinResult{addr, w.o.join(ctx, w.ml, addr)}
	})
}

const (
	maxAsked  = 256 // newcomers, at a time
	maxCalled = 16  // of these by TCP, since they did not answer by UDP
)

// askNewcomers pings the nodes that others announce, until ctx ends.
func (o *Overlay) askNewcomers(ctx context.Context, ml *memberlist.Memberlist) {
	var asking sync.WaitGroup
	defer asking.Wait()
	places, calls := make(chan struct{}, maxAsked), make(chan struct{}, maxCalled)
	for {
		select {
		case places <- struct{}{}:
		case <-ctx.Done():
			return
		}
		m, ok := o.newcomers.dequeue()
		for !ok {
			select {
			case <-o.newcomers.wake:
				m, ok = o.newcomers.dequeue()
			case <-ctx.Done():
				return
			}
		}
		asking.Go(func() {
			defer func() { <-places }()
			o.ask(ctx, ml, m, calls)
			if o.newcomers.done(m.ID) {
				o.count.unanswered.Add(1)
			}
		})
	}
}

// ask pings a node, and connects to it if it does not answer and fewer than maxCalled others are
// being connected to.
func (o *Overlay) ask(ctx context.Context, ml *memberlist.Memberlist, m vicinity.Member, calls chan struct{}) {
	at, err := netip.ParseAddrPort(m.Addrs[0])
	if err != nil {
		return
	}
	if took, err := ml.Ping(string(m.ID), net.UDPAddrFromAddrPort(at)); err == nil {
		o.transport.pings.Answered(string(m.ID), took)
		o.answered(m.ID)
		return
	}
	select {
	case calls <- struct{}{}:
		defer func() { <-calls }()
	default:
		return
	}
	if c, err := o.dialAny(ctx, m.ID, m.Addrs, dialStagger, HTTP2); err == nil {
		c.Close() // shake has noted that the node answered
	}
}

// answered makes a node that has answered a member, if others have announced it.
func (o *Overlay) answered(id vicinity.ID) {
	if _, known := o.table.get(id); known || id == o.self.ID {
		return
	}
	if m := o.newcomers.answered(id, func(e entry) { o.table.put(e.Member, &e.node) }); m != nil {
		select {
		case o.transport.packets <- &memberlist.Packet{Buf: o.transport.sift.seal(m), From: o.packets.LocalAddr(), Timestamp: time.Now()}:
		case <-o.ctx.Done():
		}
	}
}

// mayHear reports whether memberlist may have an announcement of a node from a packet: it may if
// that is a member or this node, and if it is malformed, which NotifyAlive counts.
func (o *Overlay) mayHear(b []byte) bool {
	var alive struct {
		Node string
		Addr []byte
		Port uint16
		Meta []byte
	}
	if err := codec.Unmarshal(b[1:], &alive); err != nil {
		return true
	}
	id := vicinity.ID(alive.Node)
	if _, known := o.table.get(id); known || id == o.self.ID {
		return true
	}
	m, err := decodeMember(&memberlist.Node{Name: alive.Node, Addr: alive.Addr, Port: alive.Port, Meta: alive.Meta})
	return err != nil || !o.newcomers.hold(m, bytes.Clone(b))
}

// misplaced is called when others think that this node is where it was before
// it was restarted. They will not believe otherwise until they have found that
// nobody is there, so it introduces itself until they do.
func (w *watcher) misplaced(now time.Time) {
	if now.Sub(w.noticed) > 5*misplacedCalm {
		w.strange = 0
	}
	w.noticed, w.more = now, misplacedMore
	if w.strange > misplacedMany && w.o.once.first("misplaced") {
		w.o.log.Warn().Msg("another node uses the same key: remove the identity of one of them")
	}
	if w.again.IsZero() {
		w.again = now.Add(w.pause())
	}
}

// pause is the time between two introductions.
func (w *watcher) pause() time.Duration {
	if w.strange > misplacedMany {
		return misplacedCalm
	}
	return misplacedWait
}

// introduce tells some member where this node is, and reports whether it could begin.
func (w *watcher) introduce(ctx context.Context) bool {
	ok := w.exchange(ctx)
	if ok {
		w.strange++
	}
	return ok
}

// exchange exchanges state with some member, and reports whether it could begin.
func (w *watcher) exchange(ctx context.Context) bool {
	list := w.o.table.list()
	if w.busy >= maxJoins || len(list) == 0 {
		return false
	}
	w.join(ctx, list[w.o.cfg.Rand.IntN(len(list))].Addrs[0])
	return true
}

// joined takes the result of a join and tells people about the first failure
// of each address.
func (w *watcher) joined(r joinResult) {
	w.busy--
	w.joiner.Done(time.Now(), r.addr, r.err == nil || errors.Is(r.err, errSelf))
	log := &w.o.log
	switch {
	case r.err == nil:
		w.o.count.joins.Add(1)
		if w.o.once.first("joined") {
			log.Info().Str("addr", r.addr).Msg("joined the network")
			w.check = time.Now().Add(settled + time.Duration(w.o.cfg.Rand.Int64N(int64(settled))))
		}
	case errors.Is(r.err, errSelf), errors.Is(r.err, context.Canceled):
	case errors.Is(r.err, trust.ErrStranger):
		w.o.count.failedJoins.Add(1)
		if w.o.once.first("join stranger " + r.addr) {
			log.Warn().Msgf("cannot join %s: it %v: use that network's invite token", r.addr, trust.ErrStranger)
		}
	case errors.Is(r.err, trust.ErrVersion):
		w.o.count.failedJoins.Add(1)
		if w.o.once.first("join version " + r.addr) {
			log.Warn().Msgf("cannot join %s: it %v", r.addr, trust.ErrVersion)
		}
	default:
		w.o.count.failedJoins.Add(1)
		if w.o.once.first("join " + r.addr) {
			log.Warn().Err(r.err).Msgf("cannot join %s for now: it is tried again", r.addr)
		}
	}
}

// join exchanges state with whoever is at the address.
func (o *Overlay) join(ctx context.Context, ml *memberlist.Memberlist, addr string) error {
	list, err := resolve(ctx, o.cfg.Net, addr)
	if err != nil {
		return err
	}
	for _, a := range list {
		if err = o.joinOne(ml, a); err == nil || ctx.Err() != nil {
			return err
		}
	}
	return err
}

func (o *Overlay) joinOne(ml *memberlist.Memberlist, a netip.AddrPort) error {
	_, err := ml.Join([]string{a.String()})
	if cause := o.transport.failure(a.String()); cause != nil && err != nil {
		return cause
	}
	if err != nil {
		// What memberlist collects has several lines.
		text := strings.Join(strings.Fields(err.Error()), " ")
		_, text, _ = strings.Cut(text, "* ")
		return fmt.Errorf("exchange state: %s", label(text, 200))
	}
	return nil
}
