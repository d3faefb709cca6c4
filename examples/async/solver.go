package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"zorilla/examples/peers"
)

// message is what ranks say to each other. An empty one is answered, so that both ends hear
// that the other is there.
type message struct {
	Version version `json:"version,omitzero"` // of the plane
	Plane   []byte  `json:"plane,omitempty"`  // the one that the other rank is beside
	All     table   `json:"all,omitempty"`
	// Made is when the iteration ended that made the plane, with -times.
	Made time.Time `json:"made,omitzero"`
}

const (
	aliveEvery = 2 * time.Second
	lookEvery  = time.Second
	tell       = 50 // iterations
)

var errAlone = errors.New("nobody is there any more")

type solver struct {
	place   peers.Place
	options options
	out     io.Writer
	over    chan struct{} // closed when all is done

	mu      sync.Mutex
	part    *part
	news    chan struct{}        // closed, and replaced, when part has changed
	others  []*peers.Conn        // whom this rank tells what is new
	callers map[*peers.Conn]bool // who tell it
	met     bool                 // somebody was there
	seen    time.Time            // when somebody was there last whom this rank waits for
	made    time.Time            // when the newest iteration ended

	refused bool // the node takes no checkpoints
}

func (s *solver) say(format string, args ...any) {
	fmt.Fprintf(s.out, "rank %d: %s\n", s.place.Rank, fmt.Sprintf(format, args...))
}

// tellAll has everybody look again who waits for news. The lock is held.
func (s *solver) tellAll() {
	close(s.news)
	s.news = make(chan struct{})
}

// solve iterates until all ranks are at rest.
func (s *solver) solve() error {
	group, err := peers.Join(s.place, s.serve)
	if err != nil {
		return err
	}
	defer group.Leave()
	s.say("attempt %d listens at %s", s.place.Attempt, group.Addr())
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	s.seen = time.Now()
	go group.Watch(ctx, s.meet)
	if len(s.part.all) < s.place.Max {
		go s.resize(ctx)
	}
	iterating, end := context.WithCancel(ctx)
	defer end()
	var checkpoints sync.WaitGroup
	if s.options.checkpoint > 0 {
		checkpoints.Go(func() { s.checkpoints(iterating) })
	}
	if err := s.iterate(); err != nil {
		return err
	}
	end()
	checkpoints.Wait()
	return s.finish()
}

// iterate goes on until this rank's slab is final.
func (s *solver) iterate() error {
	for {
		s.mu.Lock()
		before, begun, ran := s.part.changes, time.Now(), computed()
		worked := s.part.step()
		if worked {
			s.made = time.Now()
		}
		s.part.conclude()
		if worked || s.part.changes != before {
			s.tellAll()
		}
		ended, replaced, i, news := s.part.phase() >= final, s.part.replaced(), s.part.iteration, s.news
		took, ran := s.made.Sub(begun), computed()-ran
		s.mu.Unlock()
		if worked && s.options.times {
			s.say("iteration %d took %.6f s, %.6f s of computing", i, took.Seconds(), ran.Seconds())
		}
		switch {
		case replaced:
			return s.gone()
		case ended:
			return nil
		case worked:
			if i%tell == 0 {
				s.say("iteration %d", i)
			}
			time.Sleep(s.options.pause)
		default:
			select {
			case <-news:
			case <-time.After(lookEvery):
			}
		}
		if (!worked || i%tell == 0) && s.waited() > s.options.alone && s.place.Attempt > 1 {
			return errAlone
		}
	}
}

// computed is for how long the process has had a processor.
func computed() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // never fails
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func (s *solver) gone() error {
	return fmt.Errorf("another attempt has the place of rank %d, attempt %d", s.place.Rank, s.place.Attempt)
}

// waited is for how long nobody was there whom this rank waits for: if it has its result
// somebody who has none, else anybody.
func (s *solver) waited() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	wanted := len(s.part.all) == 1
	for _, c := range s.others {
		wanted = wanted || s.part.phase() < final || s.part.all[c.Rank].Phase < safe
	}
	if wanted {
		s.seen = time.Now()
	}
	return time.Since(s.seen)
}

// finish writes the result, and stays until all ranks have written theirs: one that is lost
// before needs its neighbours. One that has met nobody since it started is the last of all.
func (s *solver) finish() error {
	slab := s.part.slab // nobody changes it any more
	if err := os.WriteFile(resultFile(s.place.Rank), slab.pack(1, slab.planes), 0o666); err != nil {
		return err
	}
	said := fmt.Sprintf("done after %d iterations", s.part.iteration)
	if s.options.verify {
		wrong := slab.wrong(direct(slab.n))
		if !(wrong <= s.options.wrongBy()) {
			return fmt.Errorf("%s, wrong by %.1e: want at most %.1e", said, wrong, s.options.wrongBy())
		}
		said += fmt.Sprintf(", wrong by %.1e", wrong)
	}
	if s.options.checkpoint > 0 {
		s.checkpoint(true) // who comes in the place of this rank from now on needs nobody
	}
	s.mu.Lock()
	s.part.declare(safe)
	s.tellAll()
	s.seen = time.Now()
	s.mu.Unlock()
	s.say("%s", said)
	for {
		s.mu.Lock()
		all, replaced, met, news := s.part.all.safe(), s.part.replaced(), s.met, s.news
		s.mu.Unlock()
		if replaced {
			return s.gone()
		}
		if waited := s.waited(); all || waited > s.options.alone || !met && waited > s.options.alone/20 {
			if !all {
				s.say("nobody is there who has no result")
			}
			s.leave()
			return nil
		}
		select {
		case <-news:
		case <-time.After(lookEvery):
		}
	}
}

// leave tells all others that all are safe: whom they would have heard it from may have left.
func (s *solver) leave() {
	s.mu.Lock()
	others, m := append(slices.Collect(maps.Keys(s.callers)), s.others...), message{All: append(table{}, s.part.all...)}
	close(s.over)
	s.mu.Unlock()
	var told sync.WaitGroup
	for _, c := range others {
		told.Go(func() { _ = c.Send(m) })
	}
	told.Wait()
}

// resize asks for as many workers as there are slabs, if this is the lowest rank that is there.
// That more than one do harms nothing.
func (s *solver) resize(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	// Other ranks than 0 look round first.
	for looked := s.place.Rank == 0; !looked || !s.lowest(); looked = true {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
	size, err := s.place.Resize(0)
	want := max(len(s.part.all), size.Min)
	if err == nil && want != size.Wanted {
		_, err = s.place.Resize(want)
	}
	if err != nil {
		s.say("the job has workers without a slab: %v", err)
		return
	}
	s.say("asks for %d workers", want)
}

func (s *solver) lowest() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.others {
		if c.Rank < s.place.Rank {
			return false
		}
	}
	return true
}

// meet is called with a connection to another rank, which is told what is new here: to a
// neighbour the newest plane that there is when it has taken the one before.
func (s *solver) meet(c *peers.Conn) {
	s.mu.Lock()
	s.others, s.met = append(s.others, c), true
	i := s.part.iteration
	s.mu.Unlock()
	s.say("rank %d, attempt %d, is at %s in iteration %d", c.Rank, c.Attempt, c.Addr, i)
	lost := make(chan struct{})
	go func() {
		defer close(lost)
		for {
			var m message
			if c.Receive(&m) != nil {
				return
			}
			s.hear(c, m)
		}
	}()
	var all sync.WaitGroup
	all.Go(func() { s.alive(c, lost) })
	all.Go(func() { s.talk(c, true, lost) })
	<-lost
	all.Wait()
	s.mu.Lock()
	for k := range s.others {
		if s.others[k] == c {
			s.others = append(s.others[:k:k], s.others[k+1:]...)
			break
		}
	}
	i = s.part.iteration
	s.mu.Unlock()
	select {
	case <-s.over:
	default:
		s.say("rank %d, attempt %d, is away in iteration %d", c.Rank, c.Attempt, i)
	}
}

// alive asks whether somebody is there.
func (s *solver) alive(c *peers.Conn, lost <-chan struct{}) {
	for tick := time.NewTicker(aliveEvery); c.Send(message{}) == nil; {
		select {
		case <-tick.C:
		case <-lost:
			return
		}
	}
}

// talk tells a rank what it has not been told by this connection; by one that the other rank has
// made only until there is an own one, for which it may take seconds to learn the address.
func (s *solver) talk(c *peers.Conn, own bool, lost <-chan struct{}) {
	var plane version
	changes := 0
	for {
		var m message
		s.mu.Lock()
		news := s.news
		if own || !s.calls(c) {
			if side, ok := s.part.side(c.Rank); ok && s.part.version() != plane {
				plane = s.part.version()
				m.Version, m.Plane = plane, s.part.slab.face(side)
				if s.options.times {
					m.Made = s.made
				}
			}
			if s.part.changes != changes {
				changes = s.part.changes
				m.All = append(table{}, s.part.all...)
			}
		}
		s.mu.Unlock()
		if (m.Plane != nil || m.All != nil) && c.Send(m) != nil {
			return
		}
		select {
		case <-news:
		case <-lost:
			return
		case <-s.over:
			return
		}
	}
}

// calls reports whether there is a connection to the rank at the other end of one.
func (s *solver) calls(c *peers.Conn) bool {
	return slices.ContainsFunc(s.others, func(o *peers.Conn) bool { return o.Rank == c.Rank && o.Attempt == c.Attempt })
}

// serve is called with the connection of another rank.
func (s *solver) serve(c *peers.Conn) {
	lost := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() { s.talk(c, false, lost) })
	s.mu.Lock()
	s.callers[c] = true
	s.mu.Unlock()
	for {
		var m message
		if c.Receive(&m) != nil {
			break
		}
		if m.Plane == nil && m.All == nil && c.Send(m) != nil {
			break
		}
		s.hear(c, m)
	}
	close(lost)
	all.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.callers, c)
}

func (s *solver) hear(c *peers.Conn, m message) {
	if m.Plane != nil && s.options.times && !m.Made.IsZero() { // zero: it has not iterated yet
		s.say("plane of rank %d took %.6f s", c.Rank, time.Since(m.Made).Seconds())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.part.hear(c.Rank, m) {
		s.tellAll()
	}
}
