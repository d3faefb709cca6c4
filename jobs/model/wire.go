package model

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/internal/core"
	"zorilla/jobs/internal/participant"
	"zorilla/jobs/internal/primary"
	"zorilla/jobs/internal/search"
	"zorilla/jobs/internal/timers"
	"zorilla/jobs/internal/wire"
	"zorilla/vicinity"
)

// Message is on its way from one Model to another.
type Message struct {
	To   vicinity.ID
	Kind MessageKind
	Job  jobs.ID
	Size int // bytes, encoded, without what carries it
	body any
}

// MessageKind says how a Message travels.
type MessageKind int

// A packet may be lost. Requests go over a connection from the node that asks,
// replies back over the same one.
const (
	Packet MessageKind = iota
	Request
	Reply
)

// Asks is the number of a request whose sender waits for a reply; 0 = it is none.
func (m Message) Asks() uint64 {
	r, _ := m.body.(request)
	return r.number
}

// Answers is the number of the request that a reply answers; 0 = it is none.
func (m Message) Answers() uint64 {
	r, _ := m.body.(reply)
	return r.number
}

// Early reports whether an agent would send a request ahead of its connection, if it is short.
func (m Message) Early() bool {
	r, _ := m.body.(request)
	switch r.body.(type) {
	case *wire.Grant, *wire.Start, *wire.Release, *wire.Report:
		return true
	}
	return false
}

// Knocks reports whether a message only asks whether its receiver runs: its machine answers.
func (m Message) Knocks() bool {
	r, _ := m.body.(request)
	_, ok := r.body.(knock)
	return ok
}

// Answered is what the sender of a message that knocks gets from a node that runs.
func (m Message) Answered() Message {
	return Message{Kind: Reply, Job: m.Job, body: reply{number: m.Asks()}}
}

// Broken is what the sender of a request gets in place of the reply when its
// connection breaks.
func (m Message) Broken() Message {
	return Message{Kind: Reply, Job: m.Job, body: reply{number: m.Asks(), failed: true}}
}

// What travels in a Message beside a packet.
type (
	request struct {
		number uint64 // of the sender; 0 = no answer is wanted
		body   any    // *Grant, *Start, *Release, *Report, *Measure, *Keep, *Book, question, fetch, knock or wants
	}
	reply struct {
		number   uint64
		refused  string        // why; "" = it was not
		failed   bool          // it could not be asked
		ack      wire.Ack      // to a Report
		state    jobs.State    // to a question; "" = the job is not known
		measured wire.Measured // to a Measure
		booked   wire.Booked   // to a Book
	}
	// question is how a job ends that another one depends on.
	question struct{ job jobs.ID }
	// knock is whether a node runs.
	knock struct{}
	// fetch is for the output files of a worker.
	fetch struct {
		job jobs.ID
		jobs.RankAttempt
	}
)

// asked is a request whose answer is awaited, and what it was sent for.
type asked struct {
	number uint64
	until  time.Time
	core.Action
	then func(now time.Time, ok bool) // in the place of an Action; nil = there is one
}

// followed is a job that another one depends on.
type followed struct {
	job, after jobs.ID
	next       time.Time // when it is asked about
	asked      bool
}

// errNoFiles: output files could not be fetched.
var errNoFiles = errors.New("no answer")

func (m *Model) packet(to vicinity.ID, p wire.Packet) {
	p.To = to
	job := cmp.Or(p.Yield, p.Recall, p.Grant)
	if p.Answer != nil {
		job = p.Answer.Job
	}
	m.send(to, Packet, job, p, p)
	m.out.Messages[len(m.out.Messages)-1].Size += wire.SignatureLen
}

// send sends a message; encoded is the part of its body that travels.
func (m *Model) send(to vicinity.ID, kind MessageKind, job jobs.ID, encoded, body any) {
	m.out.Messages = append(m.out.Messages, Message{To: to, Kind: kind, Job: job, Size: len(codec.MustMarshal(encoded)), body: body})
}

// ask sends a request whose reply matters.
func (m *Model) ask(now time.Time, to vicinity.ID, job jobs.ID, body any, a core.Action, timeout time.Duration) {
	m.request(to, job, body, asked{until: now.Add(timeout), Action: a})
}

// askThen sends a request, and calls a function with whether that was done.
func (m *Model) askThen(now time.Time, to vicinity.ID, job jobs.ID, body any, timeout time.Duration, then func(now time.Time, ok bool)) {
	m.request(to, job, body, asked{until: now.Add(timeout), then: then})
}

func (m *Model) request(to vicinity.ID, job jobs.ID, body any, a asked) {
	encoded := body
	switch body.(type) {
	case question, fetch, knock, wants:
		encoded = nil
	}
	m.number++
	a.number = m.number
	m.asked = append(m.asked, a)
	m.send(to, Request, job, encoded, request{number: m.number, body: body})
}

// Receive takes a message of another model, or of this one.
func (m *Model) Receive(now time.Time, from vicinity.ID, msg Message) Actions {
	switch b := msg.body.(type) {
	case wire.Packet:
		m.core.Received(now, from, b)
	case request:
		m.requested(now, from, b)
	case reply:
		i := slices.IndexFunc(m.asked, func(a asked) bool { return a.number == b.number })
		if i >= 0 {
			a := m.asked[i]
			m.asked = slices.Delete(m.asked, i, i+1)
			m.replied(now, a, b)
		}
	}
	return m.Tick(now)
}

// expire gives up requests that were not answered in time.
func (m *Model) expire(now time.Time) {
	for _, a := range slices.Clone(m.asked) {
		if !now.Before(a.until) {
			m.asked = slices.DeleteFunc(m.asked, func(b asked) bool { return b.number == a.number })
			m.replied(now, a, reply{failed: true})
		}
	}
}

// replied tells the core what has become of a request.
func (m *Model) replied(now time.Time, a asked, r reply) {
	bad := r.failed || r.refused != ""
	if a.then != nil {
		a.then(now, !bad)
		return
	}
	switch e := a.Effect.(type) {
	case primary.DoGrant:
		if bad {
			m.core.Update(now, a.Job, func(p *primary.Primary) { p.GrantFailed(now, e.To, e.Grant.Ranks, r.refused) })
		}
	case primary.DoCollect:
		var err error
		if bad {
			err = errNoFiles
		}
		m.core.Update(now, a.Job, func(p *primary.Primary) {
			p.Collected(now, jobs.RankAttempt{Rank: e.Output.Rank, Attempt: e.Output.Attempt}, err)
		})
	case primary.DoMeasure:
		m.core.Update(now, a.Job, func(p *primary.Primary) { p.Paired(now, e.From, e.Nodes, r.measured.Times(len(e.Nodes))) })
	case primary.DoBook:
		if bad {
			r.booked.Reason = "no answer"
		}
		if e.Book.Lease > 0 {
			m.core.Update(now, a.Job, func(p *primary.Primary) {
				p.Bookings.Answered(now, e.To, e.Book.Key, r.booked.Refused())
				p.Tick(now)
			})
		}
	case primary.DoKnock:
		how := primary.KnockAnswered
		if bad {
			how = primary.KnockMissed
		}
		m.core.Signs.Knocked(now, e, how)
	case participant.DoReport:
		if bad {
			m.core.Part.Unheard(now, e.Report.Job)
		} else {
			m.core.Part.Acknowledged(now, &e.Report, m.disk.more(now, &e.Report), r.ack)
		}
	case core.DoFollow:
		m.answeredQuestion(now, e, bad, r.state)
	}
}

// requested takes a request of another node, or of this one.
func (m *Model) requested(now time.Time, from vicinity.ID, r request) {
	switch b := r.body.(type) {
	case *wire.Grant:
		err := m.core.Granted(now, from, b)
		m.send(from, Reply, b.Job, nil, reply{number: r.number, refused: wire.WhyRefused(err)})
	case *wire.Start:
		m.core.Started(now, from, b)
	case *wire.Release:
		m.core.Released(now, from, b)
	case *wire.Measure:
		m.measure(now, from, r.number, b)
	case *wire.Report:
		m.reportReceived(now, from, r.number, b)
	case *wire.Keep:
		m.savings.keepAsked(now, from, r.number, b)
	case *wire.Book:
		if err := m.core.Bookings.Book(now, from, r.number, b); err != nil {
			m.send(from, Reply, b.Job, nil, reply{number: r.number, refused: wire.WhyRefused(err)})
		}
	case wants:
		m.savings.wanted(from, r.number, b)
	case question:
		m.send(from, Reply, b.job, nil, reply{number: r.number, state: m.questioned(b.job)})
	case fetch:
		m.send(from, Reply, b.job, nil, reply{number: r.number, failed: !m.disk.gathered(participant.WorkerID{Job: b.job, RankAttempt: b.RankAttempt})})
	}
}

// reportReceived stores a report's output, durably before the exit of one of its
// workers can be recorded, and hands the rest to the core.
func (m *Model) reportReceived(now time.Time, from vicinity.ID, number uint64, rep *wire.Report) {
	owned, ok := m.core.Serve(now, from, rep)
	if !ok {
		m.answer(rep.Job, primary.DoAnswer{To: from, Number: number})
		return
	}
	ended := m.disk.store(rep, owned)
	wait := time.Duration(0)
	if ended {
		wait = m.cfg.Disk()
	}
	m.after(now, wait, func(now time.Time) {
		if ended {
			m.disk.syncOutput(rep.Job)
		}
		m.core.Reported(now, from, rep, m.disk.received(rep), number)
	})
}

func (m *Model) answer(job jobs.ID, a primary.DoAnswer) {
	for i := range a.Ack.Workers { // what is not durable may not be freed
		w := &a.Ack.Workers[i]
		if o := m.disk.outputs[job][w.RankAttempt]; o != nil {
			w.AheadOut = max(0, w.Stdout-int64(o.safe))
			w.Stdout -= w.AheadOut
		}
	}
	if a.Ack.Start != nil {
		start := a.Ack.Start.WithAddrs(around{m}.Member)
		a.Ack.Start = &start
	}
	m.send(a.To, Reply, job, a.Ack, reply{number: a.Number, ack: a.Ack})
}

// poll asks about jobs that others wait for.
func (m *Model) poll(now time.Time) {
	for _, f := range m.follows {
		if f.asked || now.Before(f.next) {
			continue
		}
		f.asked = true
		m.ask(now, f.after.Origin(), f.after, question{f.after}, core.Action{Job: f.job, Effect: core.DoFollow{Job: f.job, After: f.after}}, wire.PartLease)
	}
}

func (m *Model) answeredQuestion(now time.Time, e core.DoFollow, bad bool, state jobs.State) {
	i := slices.IndexFunc(m.follows, func(f *followed) bool { return f.job == e.Job && f.after == e.After })
	switch f := m.follows[i]; {
	case m.State(e.Job).Final():
		m.follows = slices.Delete(m.follows, i, i+1)
	case bad || state != "" && !state.Final():
		f.asked, f.next = false, now.Add(wire.AskAgain)
	default:
		m.follows = slices.Delete(m.follows, i, i+1)
		m.core.Update(now, e.Job, func(p *primary.Primary) { p.Followed(now, e.After, state) })
	}
}

// questioned tells the state of a job of this node, the final one once it is
// durable.
func (m *Model) questioned(id jobs.ID) jobs.State {
	j := m.core.Jobs[id]
	switch {
	case j == nil:
		return ""
	case j.Primary.Rec.State.Final() && len(j.Steps) > 0:
		return jobs.Collecting
	}
	return j.Primary.Rec.State
}

// measure is round trips that a Model measures for an origin.
type measure struct {
	to     vicinity.ID
	number uint64 // of its request
	job    jobs.ID
	nodes  []vicinity.ID
	next   time.Time // look again
	until  time.Time
}

// measure begins to measure round trips for an origin.
func (m *Model) measure(now time.Time, from vicinity.ID, number uint64, b *wire.Measure) {
	for _, id := range b.Nodes {
		if m.cfg.Fresh(id, search.FreshFor) == 0 {
			m.out.Probes = append(m.out.Probes, id)
		}
	}
	m.measures = append(m.measures, &measure{to: from, number: number, job: b.Job, nodes: b.Nodes, next: now, until: now.Add(wire.MeasureTime)})
}

// tellMeasured answers those whose round trips are known, or whose time is up.
func (m *Model) tellMeasured(now time.Time) {
	going := m.measures[:0]
	for _, x := range m.measures {
		if now.Before(x.next) {
			going = append(going, x)
			continue
		}
		out, missing := wire.Measured{RTT: make([]int64, len(x.nodes))}, false
		for i, id := range x.nodes {
			rtt := m.cfg.Fresh(id, search.FreshFor)
			if rtt == 0 {
				missing = true
				_, rtt, _ = m.cfg.Member(id)
			}
			out.RTT[i] = wire.Microseconds(rtt)
		}
		if missing && now.Before(x.until) {
			x.next = timers.Earlier(x.until, now.Add(wire.MeasurePause))
			going = append(going, x)
			continue
		}
		m.send(x.to, Reply, x.job, &out, reply{number: x.number, measured: out})
	}
	m.measures = going
}

// earliest returns when tellMeasured is due; zero = not by itself.
func earliest(measures []*measure) (at time.Time) {
	for _, x := range measures {
		at = timers.Earlier(at, x.next)
	}
	return at
}
