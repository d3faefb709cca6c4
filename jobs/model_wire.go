package jobs

import (
	"errors"
	"slices"
	"time"

	"zorilla/internal/codec"
	"zorilla/vicinity"
)

// Message is on its way from one Model to another.
type Message struct {
	To   vicinity.ID
	Kind MessageKind
	Job  ID
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

// What travels in a Message beside a packet.
type (
	request struct {
		number uint64 // of the sender; 0 = no answer is wanted
		body   any    // *Grant, *Start, *Release, *Report, *Measure, question or fetch
	}
	reply struct {
		number   uint64
		refused  bool
		failed   bool     // it could not be asked
		ack      Ack      // to a Report
		state    State    // to a question; "" = the job is not known
		measured Measured // to a Measure
	}
	// question is how a job ends that another one depends on.
	question struct{ job ID }
	// fetch is for the output files of a worker.
	fetch struct {
		job ID
		RankAttempt
	}
)

// asked is a request whose answer is awaited, and what it was sent for.
type asked struct {
	number uint64
	until  time.Time
	action
}

// followed is a job that another one depends on.
type followed struct {
	job, after ID
	next       time.Time // when it is asked about
	asked      bool
}

// errNoFiles: output files could not be fetched.
var errNoFiles = errors.New("no answer")

func (m *Model) packet(to vicinity.ID, p packet) {
	p.To = to
	job := p.Yield
	if p.Answer != nil {
		job = p.Answer.Job
	}
	m.send(to, Packet, job, p, p)
	m.out.Messages[len(m.out.Messages)-1].Size += signatureLen
}

// send sends a message; encoded is the part of its body that travels.
func (m *Model) send(to vicinity.ID, kind MessageKind, job ID, encoded, body any) {
	m.out.Messages = append(m.out.Messages, Message{To: to, Kind: kind, Job: job, Size: len(codec.MustMarshal(encoded)), body: body})
}

// ask sends a request whose reply matters.
func (m *Model) ask(now time.Time, to vicinity.ID, job ID, body any, a action, timeout time.Duration) {
	encoded := body
	switch body.(type) {
	case question, fetch:
		encoded = nil
	}
	m.number++
	m.asked = append(m.asked, asked{number: m.number, until: now.Add(timeout), action: a})
	m.send(to, Request, job, encoded, request{number: m.number, body: body})
}

// Receive takes a message of another model, or of this one.
func (m *Model) Receive(now time.Time, from vicinity.ID, msg Message) Actions {
	switch b := msg.body.(type) {
	case packet:
		m.core.received(now, from, b)
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
	bad := r.failed || r.refused
	switch e := a.effect.(type) {
	case doGrant:
		if bad {
			m.core.tell(now, a.job, func(p *primary) { p.grantFailed(now, e.to, e.grant.Ranks, r.refused) })
		}
	case doCollect:
		var err error
		if bad {
			err = errNoFiles
		}
		m.core.tell(now, a.job, func(p *primary) { p.collected(now, RankAttempt{e.output.Rank, e.output.Attempt}, err) })
	case doMeasure:
		m.core.tell(now, a.job, func(p *primary) { p.paired(now, e.from, e.nodes, r.measured.times(len(e.nodes))) })
	case doReport:
		if bad {
			m.core.part.unheard(now, e.report.Job)
		} else {
			m.core.part.acknowledged(now, &e.report, m.disk.more(now, &e.report), r.ack)
		}
	case doFollow:
		m.answeredQuestion(now, e, bad, r.state)
	}
}

// requested takes a request of another node, or of this one.
func (m *Model) requested(now time.Time, from vicinity.ID, r request) {
	switch b := r.body.(type) {
	case *Grant:
		err := m.core.granted(now, from, b)
		m.send(from, Reply, b.Job, nil, reply{number: r.number, refused: err != nil})
	case *Start:
		m.core.started(now, from, b)
	case *Release:
		m.core.released(now, from, b)
	case *Measure:
		m.measure(now, from, r.number, b)
	case *Report:
		m.reportReceived(now, from, r.number, b)
	case question:
		m.send(from, Reply, b.job, nil, reply{number: r.number, state: m.questioned(b.job)})
	case fetch:
		m.send(from, Reply, b.job, nil, reply{number: r.number, failed: !m.disk.gathered(workerID{b.job, b.RankAttempt})})
	}
}

// reportReceived stores a report's output, durably before the exit of one of its
// workers can be recorded, and hands the rest to the core.
func (m *Model) reportReceived(now time.Time, from vicinity.ID, number uint64, rep *Report) {
	owned, ok := m.core.serve(now, from, rep)
	if !ok {
		m.answer(rep.Job, doAnswer{to: from, number: number})
		return
	}
	ended := m.disk.store(rep, owned)
	wait := time.Duration(0)
	if ended {
		wait = m.sync()
	}
	m.after(now, wait, func(now time.Time) {
		if ended {
			m.disk.syncOutput(rep.Job)
		}
		m.core.reported(now, from, rep, m.disk.received(rep), number)
		m.core.served(now, from, rep.Job)
	})
}

func (m *Model) answer(job ID, a doAnswer) {
	for i := range a.ack.Workers { // what is not durable may not be freed
		w := &a.ack.Workers[i]
		if o := m.disk.outputs[job][w.RankAttempt]; o != nil {
			w.AheadOut = max(0, w.Stdout-int64(o.safe))
			w.Stdout -= w.AheadOut
		}
	}
	m.send(a.to, Reply, job, a.ack, reply{number: a.number, ack: a.ack})
}

// poll asks about jobs that others wait for.
func (m *Model) poll(now time.Time) {
	for _, f := range m.follows {
		if f.asked || now.Before(f.next) {
			continue
		}
		to, ok := m.cfg.Origin(f.after)
		if !ok {
			f.next = now.Add(askAgain)
			continue
		}
		f.asked = true
		m.ask(now, to, f.after, question{f.after}, action{f.job, doFollow{f.job, f.after}}, askAgain)
	}
}

func (m *Model) answeredQuestion(now time.Time, e doFollow, bad bool, state State) {
	i := slices.IndexFunc(m.follows, func(f *followed) bool { return f.job == e.job && f.after == e.after })
	switch f := m.follows[i]; {
	case m.State(e.job).Final():
		m.follows = slices.Delete(m.follows, i, i+1)
	case bad || state != "" && !state.Final():
		f.asked, f.next = false, now.Add(askAgain)
	default:
		m.follows = slices.Delete(m.follows, i, i+1)
		m.core.tell(now, e.job, func(p *primary) { p.followed(now, e.after, state) })
	}
}

// questioned tells the state of a job of this node, the final one once it is
// durable.
func (m *Model) questioned(id ID) State {
	j := m.core.jobs[id]
	switch {
	case j == nil:
		return ""
	case j.core.rec.state.Final() && len(j.steps) > 0:
		return Collecting
	}
	return j.core.rec.state
}

// modelMeasure is round trips that a Model measures for an origin.
type modelMeasure struct {
	to     vicinity.ID
	number uint64 // of its request
	job    ID
	nodes  []vicinity.ID
	next   time.Time // look again
	until  time.Time
}

// measure begins to measure round trips for an origin.
func (m *Model) measure(now time.Time, from vicinity.ID, number uint64, b *Measure) {
	for _, id := range b.Nodes {
		if _, rtt, _ := m.cfg.Member(id); rtt == 0 {
			m.out.Probes = append(m.out.Probes, id)
		}
	}
	m.measures = append(m.measures, &modelMeasure{to: from, number: number, job: b.Job, nodes: b.Nodes, next: now, until: now.Add(measureTime)})
}

// tellMeasured answers those whose round trips are known, or whose time is up.
func (m *Model) tellMeasured(now time.Time) {
	going := m.measures[:0]
	for _, x := range m.measures {
		if now.Before(x.next) {
			going = append(going, x)
			continue
		}
		out, missing := Measured{RTT: make([]int64, len(x.nodes))}, false
		for i, id := range x.nodes {
			_, rtt, _ := m.cfg.Member(id)
			out.RTT[i] = microseconds(rtt)
			missing = missing || out.RTT[i] == 0
		}
		if missing && now.Before(x.until) {
			x.next = earlier(x.until, now.Add(measurePause))
			going = append(going, x)
			continue
		}
		m.send(x.to, Reply, x.job, &out, reply{number: x.number, measured: out})
	}
	m.measures = going
}

// measuring returns when tellMeasured is due; zero = not by itself.
func (m *Model) measuring() (at time.Time) {
	for _, x := range m.measures {
		at = earlier(at, x.next)
	}
	return at
}
