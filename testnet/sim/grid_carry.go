package sim

import (
	"time"

	"zorilla/flood"
	"zorilla/jobs"
	"zorilla/jobs/model"
	"zorilla/node/fastrpc"
)

// Cost is what a job's search took, counted where it happens, not by what the
// origin is told.
type Cost struct {
	Rounds []RoundCost
	Sum    RoundCost // of the rounds
	// Answers are packets that offer, decline or give back.
	Answers, AnswerBytes int
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

// Copies returns how many copies were sent of all floods so far.
func (g *Grid) Copies() (n int) {
	for id := range g.costs {
		n += g.Cost(id).Sum.Messages
	}
	return n
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
	job    jobs.ID
	cost   *Cost
	number int
}

func (l label) round() *RoundCost { return &l.cost.Rounds[l.number] }

// last labels what belongs to the last round of a job.
func (g *Grid) last(id jobs.ID) label {
	c := g.cost(id)
	return label{id, c, len(c.Rounds) - 1}
}

func (g *Grid) startFlood(i int, now time.Time, ad model.Advert) flood.Flood {
	f, out, err := g.nodes[i].flood.Start(now, ad.Radius, advertisementLife, ad.Payload)
	if err == nil { // else there are too many, and the search tries again later
		c := g.cost(ad.Job)
		c.Rounds = append(c.Rounds, RoundCost{Radius: ad.Radius})
		g.carry(i, out, g.last(ad.Job))
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
		if !ok || g.cfg.Lose(from, to, model.Message{To: id, Job: l.job}) {
			continue
		}
		g.o.Send(from, to, func() { g.flooded(from, to, out.Packet, l) })
	}
}

func (g *Grid) flooded(from, to int, packet []byte, l label) {
	n := g.node(to)
	out := n.flood.Receive(g.Local(to), 0, g.o.ID(from), packet)
	g.carry(to, out, l)
	if out.Deliver == nil || out.Deliver.Again {
		l.round().Duplicates++
	} else {
		l.round().Reached++
	}
	if out.Deliver == nil {
		return
	}
	g.perform(to, n.jobs.Advertised(g.Local(to), *out.Deliver))
}

// post brings a message of a jobs model to another one.
func (g *Grid) post(from int, m model.Message) {
	to, ok := g.o.Index(m.To)
	if !ok {
		return
	}
	lost := g.cfg.Lose(from, to, m)
	if m.Knocks() {
		if !lost {
			g.knock(from, to, m)
		}
		return
	}
	if m.Kind == model.Packet {
		c := g.cost(m.Job)
		c.Answers++
		c.AnswerBytes += m.Size + kindByte
		if !lost {
			g.o.Send(from, to, func() { g.receive(from, to, m) })
		}
		return
	}
	if lost {
		g.cut(from, to, m)
		return
	}
	at := g.o.at
	packet := false
	if m.Kind == model.Request {
		at = g.connect(from, to)
		if packet = at > g.o.at && m.Early() && m.Size <= fastrpc.MaxBody && g.o.rnd.Float64() >= g.o.cfg.Noise.Loss; packet {
			at = g.o.at
		}
	}
	at += g.o.delay(from, to)
	for !packet && g.o.rnd.Float64() < g.o.cfg.Noise.Loss {
		at += resend
	}
	g.convey(from, to, at-g.o.at, m)
}

// cut breaks the connection of a request or a reply in the place of carrying it.
func (g *Grid) cut(from, to int, m model.Message) {
	if m.Kind == model.Request {
		g.fails(owed{from, to, m}, g.o.delay(from, to))
		return
	}
	if o, ok := g.nodes[from].answers(to, m); ok {
		g.fails(o, g.o.delay(from, to))
	}
}

// convey brings a request or a reply to another node after a time, if nothing goes
// wrong.
func (g *Grid) convey(from, to int, d time.Duration, m model.Message) {
	g.nodes[from].answers(to, m)
	life := g.o.hosts[to].life
	breaks := from != to && m.Kind == model.Request && g.chance(g.Faults.Broken)
	switch {
	case from == to:
	case breaks && g.chance(0.5): // before it arrives
		g.fails(owed{from, to, m}, d)
		return
	case breaks:
		g.fails(owed{from, to, m}, d)
	case g.chance(g.Faults.Stalled):
		d += g.o.upTo(20 * time.Second)
	case g.o.severed(from, to) && g.chance(0.5): // it is sent again until the network has healed
		d += g.o.upTo(time.Minute)
	}
	g.o.Schedule(d, func() {
		switch {
		case g.o.severed(from, to): // nobody says that it is lost
		case !g.o.Up(to) || g.o.hosts[to].life != life:
			g.fails(owed{from, to, m}, g.o.delay(to, from))
		default:
			g.receive(from, to, m)
		}
	})
}

func (g *Grid) receive(from, to int, m model.Message) {
	n, watch := g.node(to), g.cfg.Watch
	if m.Asks() > 0 && from != to {
		n.owes = append(n.owes, owed{from, to, m})
	}
	if watch != nil {
		watch.Arrives(from, to, m)
	}
	g.perform(to, n.jobs.Receive(g.Local(to), g.o.ID(from), m))
	if watch != nil {
		watch.Arrived(from, to, m)
	}
}

// connect returns when a node's connection to another one is open.
func (g *Grid) connect(from, to int) time.Duration {
	pair := [2]int{from, to}
	if _, ok := g.links[pair]; !ok {
		g.links[pair] = g.o.at + 2*g.o.RTT(from, to)
	}
	return max(g.o.at, g.links[pair])
}
