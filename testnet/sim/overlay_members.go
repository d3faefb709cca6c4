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
	i := o.index[o.addHost(site).id]
	o.Revive(i)
	return i
}

// Revive starts a node that was stopped, where it was before.
func (o *Overlay) Revive(i int) {
	h := o.hosts[i]
	h.down, h.life, h.core, h.timer = false, h.life+1, nil, forever
	o.tell(i, func(s int) bool { return o.part[s] == o.part[h.site] }, true)
	if !o.cfg.Idle {
		o.begin(i)
	}
}

// Crash stops nodes. The others believe in them for as long as suspicion says,
// and then hear of their end one by one, if they have not come back by then.
func (o *Overlay) Crash(nodes ...int) {
	for _, i := range nodes {
		h := o.hosts[i]
		life := h.life
		h.down = true
		o.Schedule(suspicion, func() {
			if h.life == life {
				o.tell(i, everywhere, false)
			}
		})
	}
}

func everywhere(int) bool { return true }

// Leave stops nodes that say goodbye: the others hear of it at once, one by
// one.
func (o *Overlay) Leave(nodes ...int) {
	for _, i := range nodes {
		o.hosts[i].down = true
		o.tell(i, everywhere, false)
	}
}

// tell makes a node a member in the eyes of some sites, or one no more. The nodes
// there to which that is news hear of it one by one.
func (o *Overlay) tell(i int, at func(site int) bool, member bool) {
	set, news := (*vicinity.Roster).Remove, (*vicinity.Core).Leave
	if member {
		set, news = (*vicinity.Roster).Add, (*vicinity.Core).Join
	}
	id, changed := o.hosts[i].id, make([]bool, len(o.roster))
	for site, r := range o.roster {
		changed[site] = at(site) && set(r, id)
	}
	if o.cfg.Idle && len(o.listeners) == 0 {
		return
	}
	for k, h := range o.hosts {
		if k == i || h.down || !changed[h.site] {
			continue
		}
		life := h.life
		o.Schedule(o.upTo(heard), func() {
			if h.down || h.life != life {
				return
			}
			if h.core != nil {
				o.Feed(k, news(h.core, o.Now(), id))
			}
			for _, hear := range o.listeners {
				hear(k, id, member)
			}
		})
	}
}

// Cut separates some sites from all others: no packet passes between the two
// parts, and after the time of suspicion each forgets the other. A cut from before
// is healed.
func (o *Overlay) Cut(sites ...int) {
	o.Heal()
	for _, s := range sites {
		o.part[s] = 1
	}
	o.cuts++
	this := o.cuts
	o.Schedule(suspicion, func() {
		if o.cuts == this {
			o.across(false)
		}
	})
}

// Heal joins the parts of a network that was cut. Their nodes are members of
// each other again at once, and hear so one by one.
func (o *Overlay) Heal() {
	o.across(true)
	clear(o.part)
}

// across makes the nodes of each part members in the eyes of the other, or no more.
// One that is down does not come back by that.
func (o *Overlay) across(member bool) {
	part := slices.Clone(o.part)
	for i, h := range o.hosts {
		if !member || !h.down {
			o.tell(i, func(s int) bool { return part[s] != part[h.site] }, member)
		}
	}
}

// severed reports whether no packet passes between two nodes.
func (o *Overlay) severed(a, b int) bool { return o.part[o.Site(a)] != o.part[o.Site(b)] }
