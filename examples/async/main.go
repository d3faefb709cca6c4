// Async solves Poisson's equation by asynchronous iterations: each rank has a strip of the
// grid and goes on with it at its own speed, with the newest rows of its neighbours that it
// has. It waits for nobody. A rank that is lost is replaced by one that begins anew;
// meanwhile the others go on with what it said last, and then learn where it is.
//
//	zorilla run -n 2..4 --retries 5 -- ./async -n 64
//
// There are as many strips as the job may have ranks, MAX of -n MIN..MAX, or fewer if these
// would have fewer than -rows rows: then rank 0 asks for as many workers as there are strips,
// and who has come meanwhile ends at once. The others end when rank 0 has heard of all of
// them, several times in a row, that nothing changes any more.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"zorilla/examples/peers"
)

func main() {
	if err := run(os.Args[1:], os.Getenv, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "async:", err)
		os.Exit(1)
	}
}

func run(args []string, getenv func(string) string, stdout io.Writer) error {
	flags := flag.NewFlagSet("async", flag.ContinueOnError)
	n := flags.Int("n", 64, "points of the grid in each direction")
	limit := flags.Float64("limit", 1e-8, "the largest change of an iteration that counts as none")
	pause := flags.Duration("pause", 0, "pause after each iteration")
	rows := flags.Int("rows", 8, "the fewest rows that are worth a worker")
	if err := flags.Parse(args); err != nil {
		return err
	}
	p, err := peers.Here(getenv)
	if err != nil {
		return err
	}
	if *n < 1 || *n > 4096 || *rows < 1 {
		return fmt.Errorf("-n %d -rows %d: want a grid of 1 to 4096 points, and at least a row for a worker", *n, *rows)
	}
	strips := max(1, min(p.Max, *n / *rows))
	if p.Rank >= strips {
		fmt.Fprintf(stdout, "rank %d: has no strip\n", p.Rank)
		return nil
	}
	s := &solver{place: p, strips: strips, strip: newStrip(*n, p.Rank, strips), limit: *limit,
		out: stdout, settled: map[int]int{}, over: make(chan struct{}), seen: time.Now()}
	return s.solve(*pause)
}

// message is what ranks say to each other.
type message struct {
	Row     []float64 `json:"row,omitempty"`     // of a neighbour
	Settled *bool     `json:"settled,omitempty"` // a report, to rank 0
	Over    bool      `json:"over,omitempty"`
}

const (
	reportEvery = 50 * time.Millisecond
	aliveEvery  = 2 * time.Second
	// enough reports in a row that nothing changes, of each rank, are the end.
	enough = 5
	tell   = 500 // iterations
	// alone is after which a rank gives up that was replaced when all others had ended.
	alone = 30 * time.Second
)

var errAlone = errors.New("nobody is there any more")

type solver struct {
	place  peers.Place
	strips int
	strip  *strip
	limit  float64
	out    io.Writer
	over   chan struct{} // closed when all is done
	once   sync.Once

	mu      sync.Mutex
	settled map[int]int // of rank 0: reports in a row, by rank
	others  []*peers.Conn
	seen    time.Time // when somebody was there
}

func (s *solver) say(format string, args ...any) {
	fmt.Fprintf(s.out, "rank %d: %s\n", s.place.Rank, fmt.Sprintf(format, args...))
}

func (s *solver) end() { s.once.Do(func() { close(s.over) }) }

// solve iterates until all ranks have settled.
func (s *solver) solve(pause time.Duration) error {
	group, err := peers.Join(s.place, s.serve)
	if err != nil {
		return err
	}
	defer group.Leave()
	s.say("attempt %d listens at %s", s.place.Attempt, group.Addr())
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go group.Watch(ctx, s.meet)
	if s.place.Rank == 0 {
		go s.reports(nil, s.over)
		if s.strips < s.place.Max {
			go s.resize()
		}
	}
	for {
		select {
		case <-s.over:
			s.mu.Lock()
			for _, c := range s.others { // who has not heard it of rank 0
				_ = c.Send(message{Over: true})
			}
			s.mu.Unlock()
			_, iterations, _ := s.strip.row(above)
			s.say("done after %d iterations, wrong by %.1e", iterations, s.strip.wrong())
			return nil
		default:
		}
		s.strip.sweep()
		if _, i, _ := s.strip.row(above); i%tell == 0 {
			s.say("iteration %d", i)
			if s.forsaken() {
				return errAlone
			}
		}
		time.Sleep(pause)
	}
}

// resize asks for as many workers as there are strips.
func (s *solver) resize() {
	size, err := s.place.Resize(0)
	want := max(s.strips, size.Min)
	if err == nil && want != size.Wanted {
		_, err = s.place.Resize(want)
	}
	if err != nil {
		s.say("the job has workers without a strip: %v", err)
		return
	}
	s.say("asks for %d workers", want)
}

func (s *solver) forsaken() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.others) > 0 || s.strips == 1 {
		s.seen = time.Now()
	}
	return time.Since(s.seen) > alone
}

// meet is called with a connection to another rank: a neighbour is told this one's rows,
// the newest that there are when it has taken the one before; rank 0 is told how it goes.
func (s *solver) meet(c *peers.Conn) {
	_, i, _ := s.strip.row(above)
	s.say("rank %d, attempt %d, is at %s in iteration %d", c.Rank, c.Attempt, c.Addr, i)
	s.mu.Lock()
	s.others = append(s.others, c)
	s.mu.Unlock()
	lost := make(chan struct{})
	go func() { // the other end says only that it is there
		defer close(lost)
		for {
			var m message
			if c.Receive(&m) != nil {
				return
			}
		}
	}()
	var all sync.WaitGroup
	all.Go(func() { s.alive(c, lost) })
	if c.Rank == s.place.Rank-1 {
		all.Go(func() { s.rows(c, above, lost) })
	}
	if c.Rank == s.place.Rank+1 {
		all.Go(func() { s.rows(c, below, lost) })
	}
	if c.Rank == 0 {
		all.Go(func() { s.reports(c, lost) })
	}
	<-lost
	all.Wait()
	s.mu.Lock()
	for k := range s.others {
		if s.others[k] == c {
			s.others = append(s.others[:k:k], s.others[k+1:]...)
			break
		}
	}
	s.mu.Unlock()
	_, i, _ = s.strip.row(above)
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

// rows sends a neighbour what it needs.
func (s *solver) rows(c *peers.Conn, side int, lost <-chan struct{}) {
	for {
		values, _, newer := s.strip.row(side)
		if c.Send(message{Row: values}) != nil {
			return
		}
		select {
		case <-newer:
		case <-lost:
			return
		case <-s.over:
			return
		}
	}
}

// reports tells rank 0 how this strip goes; without a connection this is rank 0.
func (s *solver) reports(c *peers.Conn, lost <-chan struct{}) {
	for tick := time.NewTicker(reportEvery); ; {
		select {
		case <-tick.C:
		case <-lost:
			return
		case <-s.over:
			return
		}
		settled, _ := s.strip.report(s.limit)
		if c == nil {
			s.reported(0, settled)
		} else if c.Send(message{Settled: &settled}) != nil {
			return
		}
	}
}

// reported counts, at rank 0, who has settled for how long.
func (s *solver) reported(rank int, settled bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if settled {
		s.settled[rank]++
	} else {
		delete(s.settled, rank)
	}
	for r := range s.strips {
		if s.settled[r] < enough {
			return
		}
	}
	s.end()
}

// serve is called with the connection of another rank.
func (s *solver) serve(c *peers.Conn) {
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.settled, c.Rank)
	}()
	for {
		var m message
		if c.Receive(&m) != nil {
			return
		}
		switch {
		case m.Over:
			s.end()
			return
		case m.Settled != nil:
			s.reported(c.Rank, *m.Settled)
		case m.Row == nil:
			if c.Send(m) != nil {
				return
			}
		case c.Rank == s.place.Rank-1:
			s.strip.learn(above, m.Row)
		case c.Rank == s.place.Rank+1:
			s.strip.learn(below, m.Row)
		}
	}
}
