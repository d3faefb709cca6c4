package keep

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"zorilla/internal/sanitize"
	"zorilla/jobs"
	"zorilla/jobs/internal/wire"
	"zorilla/vicinity"
)

const (
	// originWithin is how long an origin is waited for that has to hear of a checkpoint.
	originWithin = 30 * time.Second
	// maxTries bounds how many nodes are asked to keep one.
	maxTries = 8
	// slowest is how fast a node has to fetch one at least, in bytes a second, after
	// keepWithin.
	slowest    = 1 << 20
	keepWithin = 30 * time.Second
)

// Around is what a Saver needs of the node and its network. Its functions may be called from any goroutine.
type Around struct {
	Self vicinity.ID
	// Go calls a function in a goroutine that the node waits for when it ends.
	Go func(func())
	// Nearby lists nodes that may keep a checkpoint of a worker.
	Nearby func(Worker) Candidates
	// Label is what people call a node.
	Label func(vicinity.ID) string
	// Ask has a node do what a message says.
	Ask func(ctx context.Context, to vicinity.ID, m *wire.Keep) error
	// Begun returns the largest number of a rank's checkpoints before its worker's.
	Begun func(Worker) int
	// Read puts a directory of a worker into the store, pinned until done is called, and says what of it is left out.
	Read func(ctx context.Context, id Worker, dir string) (out jobs.RankOutput, leftOut string, done func(), err error)
	// Made has the origin hear of a checkpoint; false = the worker is not here any more.
	Made func(Worker, jobs.Checkpoint) bool
	// Number notes that a number is taken, unless it is 0, and returns the largest one that was.
	Number func(id Worker, number int) (before int, err error)
}

// Candidates are nodes that may keep a checkpoint.
type Candidates struct {
	List  []vicinity.ID // best first
	Short string        // why these are no better ones, or ""
	Far   bool          // one of the keepers is to be one of Apart
	Apart []vicinity.ID // those of List that are in another cluster than this node
}

// apart reports whether one of the nodes is in another cluster.
func (c *Candidates) apart(nodes ...vicinity.ID) bool {
	return slices.ContainsFunc(nodes, func(id vicinity.ID) bool { return slices.Contains(c.Apart, id) })
}

// next takes a node out of the list: the first, or of another cluster if there is one and that is wanted.
func (c *Candidates) next(far bool) vicinity.ID {
	i := 0
	if far {
		i = max(0, slices.IndexFunc(c.List, func(id vicinity.ID) bool { return c.apart(id) }))
	}
	id := c.List[i]
	c.List = slices.Delete(c.List, i, i+1)
	return id
}

// Saver has checkpoints of a node's workers kept. Its methods may be called from any goroutine.
type Saver struct {
	Around
	keeper *Keeper

	mu sync.Mutex // guards of
	of map[Worker]*progress
}

// progress is what is known of the checkpoints of one.
type progress struct {
	turn chan struct{} // capacity 1: who makes one

	// Guarded by the Saver's mutex.
	number int           // of the newest
	known  int           // the largest one that the origin has
	oldest int           // that it needs
	news   chan struct{} // closed when these change
	kept   []vicinity.ID // by whom the newest is kept
	short  string        // what was answered last of why it is kept by no others
}

// NewSaver returns one that keeps what it makes in a Keeper, too.
func NewSaver(a Around, k *Keeper) *Saver {
	return &Saver{Around: a, keeper: k, of: map[Worker]*progress{}}
}

func (s *Saver) progress(id Worker) *progress {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.of[id]
	if w == nil {
		w = &progress{turn: make(chan struct{}, 1), news: make(chan struct{})}
		s.of[id] = w
	}
	return w
}

// Forget lets go of a worker that is not here any more.
func (s *Saver) Forget(id Worker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.of, id)
}

// Acknowledged takes what the origin has of the checkpoints of a worker.
func (s *Saver) Acknowledged(id Worker, a wire.CheckpointAck) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.of[id]
	if w == nil { // nobody waits for it
		return
	}
	w.known, w.oldest = max(w.known, a.Known), max(w.oldest, a.Oldest)
	close(w.news)
	w.news = make(chan struct{})
}

// Checkpoint makes a checkpoint of a worker. It goes on when ctx ends, for as long as running lasts. Errors
// are why there is none.
func (s *Saver) Checkpoint(running, ctx context.Context, id Worker, q jobs.CheckpointAsk) (jobs.CheckpointAnswer, error) {
	w := s.progress(id)
	select {
	case w.turn <- struct{}{}:
	case <-ctx.Done():
		return jobs.CheckpointAnswer{}, context.Cause(ctx)
	}
	out, leftOut, done, err := s.Read(ctx, id, q.Dir)
	if err == nil && out.Files == 0 {
		done()
		err = fmt.Errorf("%w: there is no file in %s: write your state first", jobs.ErrRefused, q.Dir)
	}
	var c jobs.Checkpoint
	if err == nil {
		if c, err = s.number(id, w, q, out); err != nil {
			done()
		}
	}
	if err != nil {
		<-w.turn
		return jobs.CheckpointAnswer{}, err
	}
	result := make(chan jobs.CheckpointAnswer, 1)
	s.Go(func() {
		defer func() { <-w.turn }()
		defer done()
		result <- s.save(running, id, w, c)
	})
	a := answerOf(&c)
	if !q.Wait {
		a.LeftOut = leftOut
		return a, nil
	}
	select {
	case a = <-result:
		s.mu.Lock()
		a.Told, w.short = a.Short != "" && a.Short == w.short, a.Short
		s.mu.Unlock()
		a.LeftOut = leftOut
		return a, nil
	case <-ctx.Done():
		return jobs.CheckpointAnswer{}, context.Cause(ctx)
	}
}

// number gives a checkpoint its number.
func (s *Saver) number(id Worker, w *progress, q jobs.CheckpointAsk, out jobs.RankOutput) (jobs.Checkpoint, error) {
	s.mu.Lock()
	last := w.number
	s.mu.Unlock()
	if last == 0 {
		before, err := s.Number(id, 0)
		if err != nil {
			return jobs.Checkpoint{}, err
		}
		last = max(before, s.Begun(id))
	}
	c := jobs.Checkpoint{Number: last + 1, Epoch: q.Epoch, All: q.All, Dir: q.Dir, Manifest: out.Manifest, Files: out.Files, Bytes: out.Bytes}
	if c.Epoch == 0 {
		c.Epoch = int64(c.Number)
	}
	_, err := s.Number(id, c.Number)
	s.mu.Lock()
	w.number = c.Number
	s.mu.Unlock()
	return c, err
}

// save has nodes keep a checkpoint, and its origin hear of it.
func (s *Saver) save(ctx context.Context, id Worker, w *progress, c jobs.Checkpoint) jobs.CheckpointAnswer {
	held := make(chan error, 1) // here, while others fetch it
	s.Go(func() {
		held <- s.keeper.Hold(time.Now(), s.Self, id.Job, &wire.Kept{Rank: id.Rank, Number: c.Number, Manifest: c.Manifest, Bytes: c.Bytes})
	})
	keepers, short := s.keepers(ctx, id, w, &c)
	c.Holders, c.Short = keepers, sanitize.OneLineOf(short, jobs.MaxShort)
	if err := <-held; err == nil {
		c.Holders = append(slices.Clone(keepers), s.Self)
	} else if len(keepers) == 0 {
		c.Short = sanitize.OneLineOf(fmt.Sprintf("no node keeps it: %s; this one: %v", short, err), jobs.MaxShort)
	}
	a := answerOf(&c)
	if a.Short = c.Short; len(c.Holders) == 0 {
		return a
	}
	for _, id := range keepers {
		a.Keepers = append(a.Keepers, s.Label(id))
	}
	if !s.Made(id, c) {
		a.Short = "the worker has ended"
		return a
	}
	if a.Safe = s.await(ctx, w, c.Number); !a.Safe {
		a.Short = fmt.Sprintf("its origin has not confirmed it in %v: it will hear of it when it answers again", originWithin)
		return a
	}
	s.trim(ctx, id, w, c.Holders)
	return a
}

func answerOf(c *jobs.Checkpoint) jobs.CheckpointAnswer {
	return jobs.CheckpointAnswer{Number: c.Number, Epoch: c.Epoch, Files: c.Files, Bytes: c.Bytes, Keepers: []string{}}
}

// keepers has nodes keep a checkpoint, those first that kept the one before: they have what did not change. Short
// says why there are not enough of them, or no better ones.
func (s *Saver) keepers(ctx context.Context, id Worker, w *progress, c *jobs.Checkpoint) (list []vicinity.ID, short string) {
	s.mu.Lock()
	before := w.kept
	s.mu.Unlock()
	near := s.Nearby(id)
	others := slices.DeleteFunc(slices.Clone(near.List), func(n vicinity.ID) bool { return slices.Contains(before, n) })
	short, near.List = near.Short, slices.Concat(before, others)
	if len(near.List) < jobs.Keepers && short == "" {
		short = fmt.Sprintf("only %d of %d nodes that should keep it are there", len(near.List), jobs.Keepers)
	}
	m := wire.Keep{Job: id.Job, New: &wire.Kept{Rank: id.Rank, Number: c.Number, Manifest: c.Manifest, Bytes: c.Bytes, Holders: []vicinity.ID{s.Self}}}
	ctx, stop := context.WithTimeout(ctx, keepWithin+time.Duration(c.Bytes/slowest)*time.Second)
	defer stop()
	type result struct {
		node vicinity.ID
		err  error
	}
	results, asked, asking, refused := make(chan result), 0, []vicinity.ID(nil), "there is no other"
	for len(list) < jobs.Keepers {
		for len(asking) < jobs.Keepers-len(list) && len(near.List) > 0 && asked < maxTries {
			// The last try is for any: one node that is near is better than none.
			to := near.next(near.Far && !near.apart(slices.Concat(list, asking)...) && asked < maxTries-1)
			asked, asking = asked+1, append(asking, to)
			s.Go(func() { results <- result{to, s.Ask(ctx, to, &m)} })
		}
		if len(asking) == 0 {
			break
		}
		r := <-results
		asking = slices.DeleteFunc(asking, func(n vicinity.ID) bool { return n == r.node })
		if r.err == nil {
			list = append(list, r.node)
			continue
		}
		short = fmt.Sprintf("node %s does not keep it: %v", s.Label(r.node), r.err)
		if near.apart(r.node) {
			refused = short
		}
	}
	if len(list) == jobs.Keepers {
		short = ""
		if near.Far && !near.apart(list...) {
			short = "all its keepers are in one cluster: " + refused
		}
	}
	s.mu.Lock()
	w.kept = list
	s.mu.Unlock()
	return list, short
}

// await reports whether the origin has a checkpoint, or a later one.
func (s *Saver) await(ctx context.Context, w *progress, number int) bool {
	late := time.NewTimer(originWithin)
	defer late.Stop()
	for {
		s.mu.Lock()
		known, news := w.known, w.news
		s.mu.Unlock()
		if known >= number {
			return true
		}
		select {
		case <-news:
		case <-late.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// trim lets those who keep a rank's newest checkpoint let go of older ones of this node. The origin does the same, later.
func (s *Saver) trim(ctx context.Context, id Worker, w *progress, holders []vicinity.ID) {
	s.mu.Lock()
	oldest := w.oldest
	s.mu.Unlock()
	m := &wire.Keep{Job: id.Job, Needed: []wire.Needed{{Rank: id.Rank, Oldest: oldest}}}
	for _, to := range holders {
		if to == s.Self {
			_ = s.keeper.Keep(ctx, time.Now(), s.Self, m) // fetches nothing
			continue
		}
		s.Go(func() {
			ctx, stop := context.WithTimeout(ctx, keepWithin)
			defer stop()
			_ = s.Ask(ctx, to, m) // the origin does the same, later
		})
	}
}

// ErrCannot: a worker of a job of some kind can make no checkpoint.
var ErrCannot = errors.New("no checkpoint can be made of this worker")
