// Package lobby bounds connections whose other end has not proven yet who it
// is: in all and of one address. Where there are too many the oldest has to go,
// never the newest, so that nobody can keep others out by coming first and
// saying nothing.
package lobby

import (
	"net/netip"
	"slices"
	"sync"
)

// Lobby holds the guests. Its methods may be called from any goroutine.
type Lobby struct {
	all, each int

	mu     sync.Mutex // guards what follows
	guests []*Guest   // in the order in which they came
	from   map[netip.Addr]int
}

// Guest is one connection in a lobby.
type Guest struct {
	lobby *Lobby
	from  netip.Addr
	close func()
	spoke bool // guarded by lobby.mu
}

// New returns a lobby for so many guests in all, and of each address.
func New(all, each int) *Lobby { return &Lobby{all: all, each: each, from: map[netip.Addr]int{}} }

// Enter lets a guest in. If there are too many then, one has to go: close of
// that one is called. It is one of the same address if that has too many, else
// one of the address that has most; of these one that has said nothing yet, if
// there is one, and the oldest of these.
func (l *Lobby) Enter(from netip.Addr, close func()) *Guest {
	g := &Guest{lobby: l, from: source(from), close: close}
	if out := l.enter(g); out != nil {
		out.close()
	}
	return g
}

func (l *Lobby) enter(g *Guest) (out *Guest) {
	l.mu.Lock()
	defer l.mu.Unlock()
	whose := g.from
	if l.from[whose] < l.each {
		if len(l.guests) < l.all {
			l.add(g)
			return nil
		}
		whose = l.crowd(g.from)
	}
	for _, other := range l.guests {
		if other.from != whose || out != nil && (out.spoke == other.spoke || other.spoke) {
			continue
		}
		out = other
	}
	l.remove(out)
	l.add(g)
	return out
}

// crowd returns the address that has most guests, with one more of the address
// that is coming; of several the one that came first.
func (l *Lobby) crowd(coming netip.Addr) (whose netip.Addr) {
	most := 0
	for _, g := range l.guests {
		n := l.from[g.from]
		if g.from == coming {
			n++
		}
		if n > most {
			whose, most = g.from, n
		}
	}
	return whose
}

func (l *Lobby) add(g *Guest) {
	l.guests = append(l.guests, g)
	l.from[g.from]++
}

func (l *Lobby) remove(g *Guest) {
	i := slices.Index(l.guests, g)
	if i < 0 {
		return
	}
	l.guests = slices.Delete(l.guests, i, i+1)
	if l.from[g.from]--; l.from[g.from] == 0 {
		delete(l.from, g.from)
	}
}

// Len returns how many guests there are.
func (l *Lobby) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.guests)
}

// Spoke says that the guest has begun to say who it is: those that have said
// nothing go before it.
func (g *Guest) Spoke() {
	g.lobby.mu.Lock()
	defer g.lobby.mu.Unlock()
	g.spoke = true
}

// Leave says that the guest is none any more: it is known, or gone. It may be
// called again.
func (g *Guest) Leave() {
	g.lobby.mu.Lock()
	defer g.lobby.mu.Unlock()
	g.lobby.remove(g)
}

// source returns what counts as one address: of IPv6 the network, in which one
// machine may have any address.
func source(a netip.Addr) netip.Addr {
	if a = a.Unmap(); a.Is6() {
		if p, err := a.WithZone("").Prefix(64); err == nil {
			return p.Addr()
		}
	}
	return a
}
