package jobs

import (
	"errors"
	"time"

	"zorilla/internal/codec"
	"zorilla/vicinity"
)

// Message is on its way from one Core to another.
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

// asked is a request whose answer is awaited.
type asked struct {
	number uint64
	until  time.Time
	failed func(now time.Time, refused bool)
	done   func(now time.Time, r reply)
}

// reportTimeout bounds one report.
const reportTimeout = 30 * time.Second

// errNoFiles: output files could not be fetched.
var errNoFiles = errors.New("no answer")

func (c *Core) packet(to vicinity.ID, p packet) {
	p.To = to
	job := p.Yield
	if p.Answer != nil {
		job = p.Answer.Job
	}
	c.send(to, Packet, job, p, p)
	c.out.Messages[len(c.out.Messages)-1].Size += signatureLen
}

// send sends a message; encoded is the part of its body that travels.
func (c *Core) send(to vicinity.ID, kind MessageKind, job ID, encoded, body any) {
	c.out.Messages = append(c.out.Messages, Message{To: to, Kind: kind, Job: job, Size: len(codec.MustMarshal(encoded)), body: body})
}

// ask sends a request whose reply matters.
func (c *Core) ask(now time.Time, to vicinity.ID, job ID, encoded, body any, timeout time.Duration, failed func(time.Time, bool), done func(time.Time, reply)) {
	c.number++
	c.asked = append(c.asked, asked{number: c.number, until: now.Add(timeout), failed: failed, done: done})
	c.send(to, Request, job, encoded, request{number: c.number, body: body})
}
