package sim

import (
	"time"

	"zorilla/flood"
	"zorilla/jobs"
	"zorilla/jobs/model"
)

// Cost is what a job's search took, counted where it happens, not by what the
// origin is told.
type Cost struct {
	Rounds []RoundCost
	Sum    RoundCost // of the rounds
	// Answers are packets that offer, decline or give back. Requests are those
	// and their replies.
	Answers, AnswerBytes   int
	Requests, RequestBytes int
}

// RoundCost is what one flood took.
type RoundCost struct {
	Radius     int
	Messages   int // copies sent, lost ones too
	Bytes      int // of them, as UDP payloads
	Duplicates int // copies that told their receiver nothing new
	Reached    int // nodes
}

// Cost returns what a job took so far.
func (g *Grid) Cost(id jobs.ID) Cost {
	c := g.costs[id]
	if c == nil {
		return Cost{}
	}
	out := *c
	out.Rounds = append([]RoundCost(nil), c.Rounds...)
	for _, r := range out.Rounds {
		out.Sum.Messages += r.Messages
		out.Sum.Bytes += r.Bytes
		out.Sum.Duplicates += r.Duplicates
		out.Sum.Reached += r.Reached
	}
	return out
}

func (g *Grid) cost(id jobs.ID) *Cost {
	c := g.costs[id]
	if c == nil {
		c = new(Cost)
		g.costs[id] = c
	}
	return c
}

// label says whose flood a copy belongs to.
type label struct {
	cost   *Cost
	number int
}

func (l label) round() *RoundCost { return &l.cost.Rounds[l.number] }

// tag labels what is flooded for a job: a new round, with a radius, or the last
// one, carried on.
func (g *Grid) tag(id jobs.ID, radius int) label {
	c := g.cost(id)
	if radius > 0 {
		c.Rounds = append(c.Rounds, RoundCost{Radius: radius})
	}
	return label{c, len(c.Rounds) - 1}
}

func (g *Grid) startFlood(i int, now time.Time, ad model.Advert) flood.Flood {
	f, out, err := g.nodes[i].flood.Start(now, ad.Radius, advertisementLife, ad.Payload)
	if err == nil { // else there are too many, and the search tries again later
		g.carry(i, out, g.tag(ad.Job, ad.Radius))
	}
	return f
}

// kindByte is what a packet has before its payload.
const kindByte = 1

// carry brings the copies of a flood to their receivers.
func (g *Grid) carry(from int, out flood.Out, l label) {
	for _, id := range out.To {
		r := l.round()
		r.Messages++
		r.Bytes += len(out.Packet) + kindByte
		to, ok := g.o.Index(id)
		if !ok {
			continue
		}
		g.o.Send(from, to, func() { g.flooded(from, to, out.Packet, l) })
	}
}

func (g *Grid) flooded(from, to int, packet []byte, l label) {
	n := g.node(to)
	out := n.flood.Receive(g.o.Now(), 0, g.o.ID(from), packet)
	g.carry(to, out, l)
	if out.Deliver == nil {
		l.round().Duplicates++
		return
	}
	l.round().Reached++
	g.perform(to, n.jobs.Advertised(g.o.Now(), *out.Deliver))
}

// post brings a message of a jobs model to another one.
func (g *Grid) post(from int, m model.Message) {
	to, ok := g.o.Index(m.To)
	if !ok {
		return
	}
	arrive := func() { g.perform(to, g.node(to).jobs.Receive(g.o.Now(), g.o.ID(from), m)) }
	c := g.cost(m.Job)
	if m.Kind == model.Packet {
		c.Answers++
		c.AnswerBytes += m.Size + kindByte
		g.o.Send(from, to, arrive)
		return
	}
	c.Requests++
	c.RequestBytes += m.Size
	at := g.o.at
	if m.Kind == model.Request {
		at = g.connect(from, to)
	}
	at += g.o.delay(from, to)
	for g.o.rnd.Float64() < g.o.cfg.Noise.Loss {
		at += resend
	}
	g.o.Schedule(at-g.o.at, func() {
		if g.o.Up(to) && g.o.Up(from) && g.o.part[g.o.Site(from)] == g.o.part[g.o.Site(to)] {
			arrive()
		}
	})
}

// connect returns when a node's connection to another one is open.
func (g *Grid) connect(from, to int) time.Duration {
	pair := [2]int{from, to}
	if _, ok := g.links[pair]; !ok {
		g.links[pair] = g.o.at + 2*g.o.RTT(from, to)
	}
	return max(g.o.at, g.links[pair])
}
