package sim

import (
	"crypto/ed25519"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"time"

	"zorilla/vicinity"
)

func (o *Overlay) addHost(site int) *host {
	i := len(o.hosts)
	key := make(ed25519.PublicKey, ed25519.PublicKeySize)
	binary.BigEndian.PutUint64(key, uint64(i)+1)
	h := &host{
		id: vicinity.IDFromKey(key), site: site, timer: forever,
		access: 50*time.Microsecond + time.Duration(hash(o.cfg.Seed<<20+uint64(i))%100_000)*time.Nanosecond,
	}
	o.hosts = append(o.hosts, h)
	o.index[h.id] = i
	return h
}

// begin starts a node's core. It is told of one member, as a node that joins
// by an address is; all others are in its roster.
func (o *Overlay) begin(i int) {
	h := o.hosts[i]
	roster := o.roster[h.site]
	h.core = vicinity.NewCore(vicinity.CoreConfig{
		Self: h.id, Peers: o.cfg.Peers, Roster: roster,
		Rand: rand.New(rand.NewPCG(o.rnd.Uint64(), uint64(i))),
	}, o.Now())
	o.Feed(i, h.core.Join(o.Now(), roster.At(o.rnd.IntN(roster.Len()))))
}

// Add starts a new node, which joins by the help of a random member and knows
// all others at once; they hear of it one by one.
func (o *Overlay) Add(site int) int {
	h := o.addHost(site)
	i := o.index[h.id]
	o.joined(i, func(s int) bool { return o.part[s] == o.part[site] })
	if !o.cfg.Idle {
		o.begin(i)
	}
	return i
}

// Crash stops nodes. The others believe in them for as long as Suspicion says,
// and then hear of their end one by one.
func (o *Overlay) Crash(nodes ...int) {
	for _, i := range nodes {
		o.hosts[i].down = true
		o.Schedule(o.cfg.Suspicion, func() { o.left(i, func(int) bool { return true }) })
	}
}

// Leave stops nodes that say goodbye: the others hear of it at once, one by
// one.
func (o *Overlay) Leave(nodes ...int) {
	for _, i := range nodes {
		o.hosts[i].down = true
		o.left(i, func(int) bool { return true })
	}
}

// joined makes a node a member in the eyes of some sites.
func (o *Overlay) joined(i int, at func(site int) bool) {
	o.tell(i, at, (*vicinity.Roster).Add, (*vicinity.Core).Join)
}

// left ends a node's membership in the eyes of some sites.
func (o *Overlay) left(i int, at func(site int) bool) {
	o.tell(i, at, (*vicinity.Roster).Remove, (*vicinity.Core).Leave)
}

func (o *Overlay) tell(i int, at func(int) bool, set func(*vicinity.Roster, vicinity.ID) bool, news func(*vicinity.Core, time.Time, vicinity.ID) []vicinity.Packet) {
	id := o.hosts[i].id
	for site, r := range o.roster {
		if at(site) {
			set(r, id)
		}
	}
	if o.cfg.Idle {
		return
	}
	for k, h := range o.hosts {
		if k == i || h.down || !at(h.site) {
			continue
		}
		o.Schedule(o.upTo(o.cfg.Heard), func() {
			if h.core != nil && !h.down {
				o.Feed(k, news(h.core, o.Now(), id))
			}
		})
	}
}

// Cut separates some sites from all others: no packet passes between the two
// parts, and after the time of Suspicion each forgets the other. A network
// that is cut must be healed before it is cut again.
func (o *Overlay) Cut(sites ...int) {
	for _, s := range sites {
		o.part[s] = 1
	}
	o.Schedule(o.cfg.Suspicion, func() { o.across(o.left) })
}

// Heal joins the parts of a network that was cut. Their nodes are members of
// each other again at once, and hear so one by one.
func (o *Overlay) Heal() {
	o.across(o.joined)
	clear(o.part)
}

// across makes each part see the nodes of the other in another way.
func (o *Overlay) across(see func(i int, at func(site int) bool)) {
	part := slices.Clone(o.part)
	for i, h := range o.hosts {
		if !h.down {
			see(i, func(s int) bool { return part[s] != part[h.site] })
		}
	}
}
