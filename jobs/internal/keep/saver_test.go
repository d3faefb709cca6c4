package keep

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/wire"
	"zorilla/transfer"
	"zorilla/vicinity"
)

var worker = Worker{Job: job, RankAttempt: jobs.RankAttempt{Rank: 3, Attempt: 2}}

// ward is a node with a worker that makes checkpoints, and nodes around it.
type ward struct {
	*machine
	saver *Saver
	begun int
	deaf  bool // its origin does not answer
	gone  bool // the worker has ended

	mu      sync.Mutex // guards what follows
	near    []int
	short   string
	far     bool
	apart   []int                                   // of near
	keeps   map[int]func(ctx context.Context) error // what nodes answer who are asked to keep a checkpoint; nil = they do at once
	asked   []int
	needs   []string // what nodes hear that is needed
	made    []jobs.Checkpoint
	reads   int
	text    string // in its directory
	leftOut string // of it
	root    string
}

func newWard(t *testing.T, near ...int) *ward {
	w := &ward{machine: newMachine(t), near: near, keeps: map[int]func(context.Context) error{}, text: "state", root: t.TempDir()}
	w.again()
	return w
}

// again begins another life of the node.
func (w *ward) again() {
	w.saver = NewSaver(Around{
		Self: other, Go: func(f func()) { go f() }, Nearby: func(Worker) Candidates {
			return Candidates{List: nodes(w.near), Short: w.short, Far: w.far, Apart: nodes(w.apart)}
		},
		Label: func(id vicinity.ID) string { return fmt.Sprint("node-", numberOf(id)) },
		Ask:   w.ask, Begun: func(Worker) int { return w.begun }, Read: w.read, Made: w.report,
		Number: func(_ Worker, number int) (int, error) { return Number(w.root, number) },
	}, w.keeper)
}

func numberOf(id vicinity.ID) int {
	for n := range 100 {
		if jobtest.Node(n) == id {
			return n
		}
	}
	return -1
}

func nodes(numbers []int) (list []vicinity.ID) {
	for _, n := range numbers {
		list = append(list, jobtest.Node(n))
	}
	return list
}

func (w *ward) ask(ctx context.Context, to vicinity.ID, m *wire.Keep) error {
	n := numberOf(to)
	w.mu.Lock()
	answer := w.keeps[n]
	if m.New == nil {
		w.needs = append(w.needs, fmt.Sprintf("%d%v", n, m.Needed))
		w.mu.Unlock()
		return nil
	}
	w.asked = append(w.asked, n)
	w.mu.Unlock()
	if err := (&wire.Keep{Job: m.Job, New: m.New}).Check(); err != nil || !slices.Equal(m.New.Holders, []vicinity.ID{other}) {
		return fmt.Errorf("it is asked for %+v: %w", m.New, err)
	}
	if answer == nil {
		return nil
	}
	return answer(ctx)
}

func (w *ward) read(ctx context.Context, _ Worker, dir string) (out jobs.RankOutput, leftOut string, done func(), err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reads++
	done = func() { w.store.Unpin("reading") }
	if w.text == "" {
		return out, "", done, ctx.Err()
	}
	out.Files = 1
	out.Manifest, out.Bytes = tree(w.t, transfer.PinTo(w.store, "reading"), dir+"/a", w.text)
	return out, w.leftOut, done, ctx.Err()
}

func (w *ward) report(id Worker, c jobs.Checkpoint) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gone {
		return false
	}
	if err := c.Check(); err != nil {
		w.t.Errorf("%+v: %v", c, err)
	}
	w.made = append(w.made, c)
	if !w.deaf {
		go w.saver.Acknowledged(id, wire.CheckpointAck{Known: c.Number, Oldest: c.Number})
	}
	return true
}

// checkpoint has the worker make one, and wait for it.
func (w *ward) checkpoint() jobs.CheckpointAnswer {
	w.t.Helper()
	a, err := w.saver.Checkpoint(w.t.Context(), w.t.Context(), worker, jobs.CheckpointAsk{Dir: "state", Wait: true})
	if err != nil {
		w.t.Fatal(err)
	}
	synctest.Wait()
	return a
}

func (w *ward) refuses(nodes ...int) {
	for _, n := range nodes {
		w.keeps[n] = func(context.Context) error {
			return fmt.Errorf("%w: it is full%s", jobs.ErrRefused, strings.Repeat(", and more", 50))
		}
	}
}

func TestTwoNodesKeepACheckpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWard(t, 10, 11, 12)
		a := w.checkpoint()
		slices.Sort(a.Keepers)
		if !a.Safe || a.Short != "" || a.Number != 1 || a.Epoch != 1 || a.Files != 1 || !slices.Equal(a.Keepers, []string{"node-10", "node-11"}) {
			t.Errorf("it says %+v", a)
		}
		if c := w.made[0]; len(c.Holders) != 3 || c.Holders[2] != other || c.Dir != "state" {
			t.Errorf("its origin hears %+v", c)
		}
		kept := &wire.Kept{Rank: 3, Number: 1, Manifest: w.made[0].Manifest, Bytes: a.Bytes}
		w.want("its own node", 1, kept)
		slices.Sort(w.needs)
		if want := []string{"10[{3 1}]", "11[{3 1}]"}; !slices.Equal(w.needs, want) {
			t.Errorf("keepers hear that these are needed: %v, want %v", w.needs, want)
		}
		// Those are asked first that kept the one before, and the older one goes.
		w.near, w.text, w.asked = []int{12, 11, 10}, "another state", nil
		w.checkpoint()
		slices.Sort(w.asked)
		if !slices.Equal(w.asked, []int{10, 11}) {
			t.Errorf("%v were asked", w.asked)
		}
		w.want("later", 1, &wire.Kept{Rank: 3, Number: 2, Manifest: w.made[1].Manifest, Bytes: int64(len(w.text))}, kept)
	})
}

func TestOthersAreAskedForThoseThatDoNotKeepIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWard(t, 10, 11, 12, 13, 14)
		w.refuses(10)
		w.keeps[12] = func(context.Context) error {
			time.Sleep(time.Second)
			return errors.New("it died")
		}
		if a := w.checkpoint(); !a.Safe || a.Short != "" || !slices.Equal(a.Keepers, []string{"node-11", "node-13"}) {
			t.Errorf("it says %+v", a)
		}
		if slices.Contains(w.asked, 14) {
			t.Errorf("%v were asked", w.asked)
		}
	})
}

func TestTooFewNodesKeepACheckpoint(t *testing.T) {
	for _, c := range []struct {
		near   []int
		refuse []int
		short  string // that is known before
		limit  int64  // of its own node
		want   string
		told   int // keepers
		safe   bool
	}{
		{near: nil, limit: 100, want: "only 0 of 2", safe: true},
		{near: []int{10}, limit: 100, want: "only 1 of 2", told: 1, safe: true},
		{near: []int{10, 11}, refuse: []int{11}, limit: 100, want: "node-11 does not keep it: refused: it is full", told: 1, safe: true},
		{near: []int{10, 11}, short: "both are on this host", limit: 100, told: 2, safe: true},
		{near: []int{10}, short: "it is on this host", limit: 100, want: "on this host", told: 1, safe: true},
		{near: []int{10}, limit: 0, want: "only 1 of 2", told: 1, safe: true},
		{near: []int{10}, refuse: []int{10}, limit: 0, want: "no node keeps it"},
		{near: []int{10, 11, 12, 13, 14, 15, 16, 17, 18, 19}, refuse: []int{10, 11, 12, 13, 14, 15, 16, 17}, limit: 100, want: "does not keep it", safe: true},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWard(t, c.near...)
			w.refuses(c.refuse...)
			w.short, w.limit = c.short, c.limit
			a := w.checkpoint()
			if a.Safe != c.safe || len(a.Keepers) != c.told || !strings.Contains(a.Short, c.want) || (c.want == "") != (a.Short == "") || strings.Contains(a.Short, "\n") {
				t.Errorf("%+v: it says %+v", c, a)
			}
			if len(w.made) != map[bool]int{true: 1}[c.safe] {
				t.Errorf("%+v: its origin hears %+v", c, w.made)
			}
			if c.safe && (w.made[0].Short != a.Short || slices.Contains(w.made[0].Holders, other) != (c.limit > 0)) {
				t.Errorf("%+v: its origin hears %+v", c, w.made)
			}
			if len(w.asked) > maxTries {
				t.Errorf("%+v: %v were asked", c, w.asked)
			}
		})
	}
}

func TestNodesThatDoNotAnswerAreNotWaitedForLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWard(t, 10, 11)
		w.keeps[11] = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		start := time.Now()
		if a := w.checkpoint(); !a.Safe || len(a.Keepers) != 1 || a.Short == "" {
			t.Errorf("it says %+v", a)
		}
		if took := time.Since(start); took != keepWithin {
			t.Errorf("it took %v", took)
		}
	})
}

// Why others do not keep it is news once, until it is something else: a program that waits is told, and only it.
func TestWhyOthersDoNotKeepItIsNewsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWard(t, 10)
		const few = "only one is on another host"
		for i, c := range []struct {
			short string
			told  bool
		}{{few, false}, {few, true}, {"another reason", false}, {"another reason", true}, {few, false}, {"", false}} {
			w.near = []int{10, 11}
			if w.short = c.short; c.short != "" {
				w.near = w.near[:1]
			}
			if a := w.checkpoint(); a.Short != c.short || a.Told != c.told {
				t.Errorf("answer %d: %q, told before: %v, want %q, %v", i+1, a.Short, a.Told, c.short, c.told)
			}
			if i > 0 {
				continue
			}
			if a, err := w.saver.Checkpoint(t.Context(), t.Context(), Worker{Job: job, RankAttempt: jobs.RankAttempt{Rank: 4, Attempt: 1}}, jobs.CheckpointAsk{Dir: "state"}); err != nil || a.Short != "" {
				t.Errorf("one that does not wait hears %+v, %v", a, err)
			}
			synctest.Wait()
		}
	})
}

func TestItsOriginIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWard(t, 10, 11)
		w.deaf = true
		start := time.Now()
		a := w.checkpoint()
		if took := time.Since(start); a.Safe || !strings.Contains(a.Short, "has not confirmed") || len(a.Keepers) != 2 || took != originWithin {
			t.Errorf("after %v it says %+v", took, a)
		}
		if len(w.needs) > 0 {
			t.Errorf("older ones are not needed any more: %v", w.needs)
		}
		w.deaf = false
		if a := w.checkpoint(); !a.Safe || a.Number != 2 || a.Short != "" {
			t.Errorf("later it says %+v", a)
		}
		// What its origin has of a later one will do as well.
		w.deaf = true
		go func() {
			time.Sleep(time.Second)
			w.saver.Acknowledged(worker, wire.CheckpointAck{Known: 2})
			time.Sleep(time.Second)
			w.saver.Acknowledged(worker, wire.CheckpointAck{Known: 5})
		}()
		start = time.Now()
		if a, took := w.checkpoint(), 2*time.Second; !a.Safe || time.Since(start) != took {
			t.Errorf("after %v it says %+v", time.Since(start), a)
		}
	})
}

func TestAWorkerThatDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWard(t, 10, 11)
		for n := range 11 {
			w.keeps[n] = func(context.Context) error { time.Sleep(time.Second); return nil }
		}
		start := time.Now()
		for n := range 3 { // the one after waits until the one before is safe, so that none is made too often
			a, err := w.saver.Checkpoint(t.Context(), t.Context(), worker, jobs.CheckpointAsk{Dir: "state", Epoch: int64(10 * n)})
			if err != nil || a.Number != n+1 || a.Safe || len(a.Keepers) > 0 || w.reads != n+1 || time.Since(start) != time.Duration(n)*time.Second {
				t.Errorf("after %v: %+v, %v, %d were read", time.Since(start), a, err, w.reads)
			}
			if want := max(1, int64(10*n)); a.Epoch != want {
				t.Errorf("its epoch is %d, want %d", a.Epoch, want)
			}
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if len(w.made) != 3 || len(w.made[2].Holders) != 3 {
			t.Errorf("its origin hears %+v", w.made)
		}
	})
}

// Two at once are made one after the other; who has asked need not stay.
func TestTwoCheckpointsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWard(t, 10, 11)
		slow := make(chan struct{})
		w.keeps[10] = func(ctx context.Context) error {
			select {
			case <-slow:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		cause := errors.New("it was interrupted")
		asking, interrupt := context.WithCancelCause(t.Context())
		results := make(chan error, 2)
		ask := func(ctx context.Context) {
			_, err := w.saver.Checkpoint(t.Context(), ctx, worker, jobs.CheckpointAsk{Dir: "state", Wait: true})
			results <- err
		}
		go ask(asking)
		synctest.Wait()
		go ask(asking)
		second := make(chan jobs.CheckpointAnswer)
		go func() { second <- w.checkpointOf("later") }()
		synctest.Wait()
		if w.reads != 1 {
			t.Errorf("%d directories were read at once", w.reads)
		}
		interrupt(cause)
		for range 2 {
			if err := <-results; !errors.Is(err, cause) {
				t.Errorf("who is interrupted hears %v", err)
			}
		}
		close(slow)
		if a := <-second; !a.Safe || a.Number != 2 {
			t.Errorf("the next one: %+v", a)
		}
		synctest.Wait()
		if len(w.made) != 2 || w.made[0].Number != 1 || len(w.made[0].Holders) != 3 || w.made[1].Number != 2 || w.made[0].Manifest == w.made[1].Manifest {
			t.Errorf("its origin hears %+v", w.made)
		}
	})
}

// checkpointOf makes one of another state, once those before are done.
func (w *ward) checkpointOf(text string) jobs.CheckpointAnswer {
	w.mu.Lock()
	w.text = text
	w.mu.Unlock()
	a, err := w.saver.Checkpoint(w.t.Context(), w.t.Context(), worker, jobs.CheckpointAsk{Dir: "state", Wait: true})
	if err != nil {
		w.t.Error(err)
	}
	return a
}

func TestNumbersGoOnAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWard(t, 10, 11)
		w.begun = 6
		for _, want := range []int{7, 8} {
			if a := w.checkpoint(); a.Number != want {
				t.Errorf("number %d, want %d", a.Number, want)
			}
		}
		w.again()
		if a := w.checkpoint(); a.Number != 9 {
			t.Errorf("after a restart: number %d, want 9", a.Number)
		}
		w.saver.Forget(worker)
		if a := w.checkpoint(); a.Number != 10 {
			t.Errorf("what is on disk counts: number %d, want 10", a.Number)
		}
		w.again()
		w.begun = 20
		if a := w.checkpoint(); a.Number != 21 {
			t.Errorf("its origin knows of 20: number %d, want 21", a.Number)
		}
	})
}

// What cannot be made has no number, and does not keep others from being made.
func TestACheckpointThatCannotBeMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWard(t, 10, 11)
		w.text = ""
		ask := func(ctx context.Context) error {
			_, err := w.saver.Checkpoint(t.Context(), ctx, worker, jobs.CheckpointAsk{Dir: "state", Wait: true})
			return err
		}
		if err := ask(t.Context()); !errors.Is(err, jobs.ErrRefused) || !strings.Contains(err.Error(), "no file in state") {
			t.Errorf("of an empty directory: %v", err)
		}
		gone, cancel := context.WithCancel(t.Context())
		w.keeps[10] = func(context.Context) error { cancel(); time.Sleep(time.Second); return nil }
		w.text = "state"
		if err := ask(gone); !errors.Is(err, context.Canceled) {
			t.Errorf("whose asker is gone: %v", err)
		}
		synctest.Wait()
		w.keeps[10] = nil
		if a := w.checkpoint(); !a.Safe || a.Number != 2 {
			t.Errorf("after these: %+v", a)
		}
		w.gone = true
		if a := w.checkpoint(); a.Safe || !strings.Contains(a.Short, "has ended") {
			t.Errorf("of a worker that is gone: %+v", a)
		}
	})
}
