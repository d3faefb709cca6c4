package jobs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Dependency says what must have become of another job before this one looks
// for workers.
type Dependency struct {
	Kind DependencyKind `json:"kind"`
	Job  ID             `json:"job"`
}

// DependencyKind is how the other job must end.
type DependencyKind string

// The kinds of dependencies.
const (
	AfterOK    DependencyKind = "afterok"    // COMPLETED
	AfterNotOK DependencyKind = "afternotok" // in any other way
	AfterAny   DependencyKind = "afterany"   // it does not matter
)

// maxDependencies bounds what one job may wait for.
const maxDependencies = 64

// check returns what is wrong, as a user sees it.
func (d Dependency) check() string {
	switch d.Kind {
	case AfterOK, AfterNotOK, AfterAny:
	default:
		return fmt.Sprintf("-d %.40s: want %s, %s or %s, as in afterok:JOB", d.Kind, AfterOK, AfterAny, AfterNotOK)
	}
	if !d.Job.Valid() {
		return fmt.Sprintf("-d %s:%.40s: not a job's whole ID", d.Kind, strings.ToValidUTF8(string(d.Job), "?"))
	}
	return ""
}

// met reports whether a job that ended in this state fulfils the dependency.
func (d Dependency) met(s State) bool {
	switch d.Kind {
	case AfterOK:
		return s == Completed
	case AfterNotOK:
		return s != Completed
	}
	return true
}

// unmet lists the dependencies that are not fulfilled yet.
func (p *primary) unmet() (list []Dependency) {
	for i, d := range p.rec.spec.After {
		if !p.rec.met[i] {
			list = append(list, d)
		}
	}
	return list
}

// followed tells what has become of a job that this one waits for: its final
// state, or "" if nobody knows it any more.
func (p *primary) followed(now time.Time, job ID, state State) {
	if p.rec.state.Final() {
		return
	}
	for i, d := range p.rec.spec.After {
		switch {
		case d.Job != job || p.rec.met[i]:
		case state == "":
			p.end(now, Failed, fmt.Sprintf("was not started: %s:%s: that job is not known any more", d.Kind, d.Job.Short()), CodeZorilla)
			return
		case !d.met(state):
			p.end(now, Failed, fmt.Sprintf("was not started: %s:%s: that job ended %s", d.Kind, d.Job.Short(), state), CodeZorilla)
			return
		default:
			p.emit(event{Kind: evFollowed, At: now, After: i + 1})
		}
	}
	p.tick(now)
}

// dependencyReason tells what the job waits for before it looks for workers.
func (p *primary) dependencyReason() string {
	list := p.unmet()
	text := fmt.Sprintf("waits for job %s to end (%s)", list[0].Job.Short(), list[0].Kind)
	if len(list) > 1 {
		text += fmt.Sprintf(" and %d more", len(list)-1)
	}
	return text
}

// AwaitFunc returns a job's status when its version is not since; see
// Service.Await. It wraps ErrNotFound if the job's origin does not know it.
type AwaitFunc func(ctx context.Context, id ID, since uint64) (Status, uint64, error)

// askAgain is waited before a job whose origin is not reachable is asked about
// once more.
const askAgain = 2 * time.Second

// follow finds out how a job ends that another one waits for.
func (s *Service) follow(e doFollow) {
	s.children.Go(func() {
		if state, ok := s.awaitEnd(e.after); ok {
			s.post(func() { s.core.tell(s.now(), e.job, func(p *primary) { p.followed(s.now(), e.after, state) }) })
		}
	})
}

// awaitEnd returns the final state of a job, "" if nobody knows it; ok is false
// if the service stops first.
func (s *Service) awaitEnd(id ID) (state State, ok bool) {
	await := s.cfg.Await
	if await == nil {
		await = s.Await
	}
	version := uint64(0)
	for s.running() {
		st, v, err := await(s.stoppedCtx, id, version)
		switch {
		case err == nil && st.State.Final() && !st.LastKnown:
			return st.State, true
		case errors.Is(err, ErrNotFound):
			return "", true
		case err == nil && v != version:
			version = v
			continue
		}
		select {
		case <-time.After(askAgain):
		case <-s.stopped:
		}
	}
	return "", false
}
