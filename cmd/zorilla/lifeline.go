package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"zorilla/jobs"
	"zorilla/node/api"
)

// nodeAway is how long a node that does not answer any more is expected back:
// it is being started again, perhaps by an upgrade. nodePoll is how often it is
// asked, or a submission tried again, meanwhile.
const (
	nodeAway = 2 * time.Minute
	nodePoll = 500 * time.Millisecond
)

// lifeline is the connection of a command to a job, through a node that may be
// away for a while. All its methods may be called from any goroutine.
type lifeline struct {
	service api.Service
	job     jobs.ID
	tell    func(format string, args ...any)

	mu     sync.Mutex
	outage *outage // nil = the node answers, as far as is known
}

// outage is a time in which the node is away.
type outage struct {
	over   chan struct{} // closed when it is over, or given up
	waited bool          // it took a while
	err    error         // why it was given up
}

// try calls f until it is no node's absence that ends it. Each time that the node
// goes away it is waited for anew.
func (l *lifeline) try(ctx context.Context, f func() error) error {
	var vain time.Time // since when the node answers, and f fails nevertheless
	for {
		began := time.Now()
		err := f()
		if ctx.Err() != nil || !away(err) {
			return err
		}
		switch now := time.Now(); {
		case vain.IsZero() || now.Sub(began) > nodePoll:
			vain = now
		case now.Sub(vain) >= nodeAway:
			return err
		}
		o := l.lost(ctx, err)
		select {
		case <-o.over:
		case <-ctx.Done():
			return ctx.Err()
		}
		switch {
		case o.err != nil:
			return o.err
		case o.waited:
			vain = time.Time{}
		default:
			pause(ctx, nodePoll)
		}
	}
}

// away reports whether an error means that the node, or the job's origin, cannot
// be asked now. That of a node which is stopping is its own context's.
func away(err error) bool {
	return errors.Is(err, api.ErrNoNode) || errors.Is(err, api.ErrUnavailable) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// lost begins to wait for the node, unless somebody does already.
func (l *lifeline) lost(ctx context.Context, why error) *outage {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.outage == nil {
		l.outage = &outage{over: make(chan struct{})}
		go l.await(ctx, why, l.outage)
	}
	return l.outage
}

// await asks the node until it answers.
func (l *lifeline) await(ctx context.Context, why error, o *outage) {
	until := time.Now().Add(nodeAway)
	for {
		st, err := l.service.Job(ctx, string(l.job))
		if ctx.Err() != nil {
			o.err = ctx.Err()
			break
		}
		if !away(err) && !st.LastKnown {
			break
		}
		if !o.waited {
			o.waited = true
			l.tell("lost sight of job %s: waiting up to %v for its node to come back", l.job.Short(), nodeAway)
		}
		if !time.Now().Before(until) {
			if o.err = err; err == nil { // another node answers from what it remembers
				o.err = why
			}
			break
		}
		pause(ctx, nodePoll)
	}
	if o.waited && o.err == nil {
		l.tell("the node is back, job %s is in sight again", l.job.Short())
	}
	l.mu.Lock()
	l.outage = nil
	l.mu.Unlock()
	close(o.over)
}

// pause waits, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// output prints the job's output. After the node was away it comes from its
// beginning: the printer knows what it has had.
func (l *lifeline) output(ctx context.Context, q api.OutputQuery, p *printer) error {
	return l.try(ctx, func() error { return l.service.Output(ctx, string(l.job), q, p.print) })
}

// pieces gives the job's output as it comes, and each byte once: after the node was away it
// comes from its beginning.
func (l *lifeline) pieces(ctx context.Context, q api.OutputQuery, give func(jobs.Output) error) error {
	seen := map[source]*position{}
	return l.try(ctx, func() error {
		return l.service.Output(ctx, string(l.job), q, func(o jobs.Output) error {
			src := source{o.Rank, o.Stream}
			if seen[src] == nil {
				seen[src] = &position{}
			}
			data, _ := seen[src].fresh(o)
			if len(data) == 0 {
				return nil
			}
			o.Offset += int64(len(o.Data) - len(data))
			o.Data = data
			return give(o)
		})
	})
}

// watch sends the status of a job at each change until its end. It closes
// the channel when it can ask no more, and reports why.
func watch(ctx context.Context, l *lifeline) (<-chan jobs.Status, <-chan error) {
	statuses, lost := make(chan jobs.Status), make(chan error, 1)
	go func() {
		defer close(statuses)
		for version := uint64(0); ; {
			var st jobs.Status
			err := l.try(ctx, func() (err error) {
				st, version, err = l.service.Await(ctx, string(l.job), version)
				if err != nil {
					version = 0 // a node that is started again counts anew
				}
				return err
			})
			if err != nil {
				lost <- err
				return
			}
			select {
			case statuses <- st:
			case <-ctx.Done():
				lost <- ctx.Err()
				return
			}
			if st.State.Final() {
				<-ctx.Done()
				lost <- ctx.Err()
				return
			}
			// A large status is dear: ask for it less often.
			select {
			case <-time.After(min(time.Duration(len(st.Workers))*50*time.Microsecond, time.Second)):
			case <-ctx.Done():
			}
		}
	}()
	return statuses, lost
}
