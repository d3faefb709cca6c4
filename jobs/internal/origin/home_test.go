package origin_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"zorilla/flood"
	"zorilla/jobs"
	"zorilla/jobs/internal/core"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/loop"
	"zorilla/jobs/internal/origin"
	"zorilla/jobs/internal/participant"
	"zorilla/jobs/internal/primary"
	"zorilla/jobs/internal/timers"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/journal"
	"zorilla/jobs/work"
	"zorilla/transfer"
	"zorilla/vicinity"
)

// home is a node without slots at which jobs are submitted. One other node offers as
// many as are wanted, and reports what their program would have done: prints its
// arguments and leaves them in files "left"; "fail CODE" ends with the code, "retry" with 9
// when it has printed who it is, "wait" does not end.
type home struct {
	t     *testing.T
	self  vicinity.Member
	other vicinity.Member
	dir   string
	log   *journal.Memory
	wrap  func(*journal.Memory) journal.Journal // nil = as it is
	store *transfer.MemStore
	limit int64 // of results

	*life
}

// life is from a start to the next stop or crash.
type life struct {
	origin.API
	own       *origin.Jobs
	core      *core.Core
	loop      *loop.Loop
	closeDisk context.CancelFunc
}

// atHome runs a test with a node.
func atHome(t *testing.T, f func(t *testing.T, h *home)) {
	synctest.Test(t, func(t *testing.T) {
		h := &home{
			t: t, dir: t.TempDir(), log: journal.NewMemory(), store: transfer.NewMemStore(1 << 30),
			self: vicinity.Member{ID: jobtest.Node(0)}, other: vicinity.Member{ID: jobtest.Node(1), Name: "other", Addrs: []string{"10.0.0.2:5444"}, Slots: jobs.MaxRanks},
		}
		h.start()
		f(t, h)
		h.stop()
	})
}

// start starts the node, anew after stop or crash.
func (h *home) start() {
	var log journal.Journal = h.log
	if h.wrap != nil {
		log = h.wrap(h.log)
	}
	rnd := rand.New(rand.NewPCG(1, uint64(time.Now().UnixNano())))
	l := &life{loop: loop.New(zerolog.Nop())}
	h.life = l
	l.core = core.New(h.self, around{h}, rnd, time.Hour)
	l.own = origin.New(origin.Config{
		Self: h.self, Dir: h.dir, Journal: log, Store: h.store, Rand: rnd, Log: zerolog.Nop(), KeepOutputs: h.limit,
		Learn:   func(vicinity.ID, []string) {},
		Written: func(participant.WorkerID) (w wire.Written) { return w },
		Fetch: func(_ context.Context, owner string, manifest transfer.Hash, _ []vicinity.ID, _ func(transfer.Stats)) (transfer.Manifest, transfer.Stats, error) {
			tree, err := transfer.PinManifest(h.store, owner, manifest)
			return tree, transfer.Stats{}, err
		},
	}, l.loop, l.core)
	l.API = l.own.API()
	disk, closeDisk := context.WithCancel(context.Background())
	l.closeDisk = closeDisk
	go h.log.Run(disk)
	if err := l.own.Load(func() error { return nil }); err != nil {
		h.t.Fatal(err)
	}
	l.loop.Start(l.owner(h))
	synctest.Wait()
}

// stop ends the node as SIGTERM does.
func (h *home) stop() {
	h.loop.Leave()
	h.loop.Stop()
	h.loop.Wait()
	h.own.Close()
	h.closeDisk()
	h.log = h.log.Reopen()
}

// crash makes the node vanish; what it had not journalled is lost.
func (h *home) crash() {
	h.closeDisk()
	h.log = h.log.Reopen()
	synctest.Wait()
	h.loop.Leave()
	h.loop.Stop()
	h.loop.Wait()
	h.own.Close()
}

// owner is a life as its loop sees it.
type owner struct {
	*life
	h *home
}

func (l *life) owner(h *home) owner { return owner{l, h} }

func (o owner) Stalled()        { o.core.Stalled(time.Now()) }
func (o owner) Wake() time.Time { return timers.Earlier(o.core.Wake(), o.own.Wake()) }

func (o owner) Due() {
	for again := true; again; {
		list, news := o.core.Advance(time.Now())
		for _, a := range list {
			switch e := a.Effect.(type) {
			case core.DoPacket, primary.DoRelease, primary.DoProbe, primary.DoStart: // START comes with the answer to a report
			case primary.DoGrant:
				o.loop.Go(func() { o.work(&e.Grant) })
			case core.DoFollow:
				o.loop.Go(func() { o.follow(e) })
			default:
				if !o.own.Perform(a) {
					panic(fmt.Sprintf("nobody does %T", e))
				}
			}
		}
		if again = len(list) > 0; news {
			o.loop.Notify()
		}
	}
	o.own.Due()
}

// work is the other node: it reports what becomes of the workers of a grant.
func (o owner) work(g *wire.Grant) {
	rep := wire.Report{Job: g.Job}
	for _, ra := range g.Ranks {
		rep.Workers = append(rep.Workers, wire.WorkerReport{RankAttempt: ra, State: jobs.WorkerReady})
	}
	for o.loop.Stopped.Err() == nil {
		ack, err := o.own.Report(o.h.other.ID, &rep)
		if err == nil && (!ack.Known || len(ack.Workers) > 0 && (ack.Workers[0].Done || ack.Workers[0].Drop)) {
			return
		}
		if err == nil && ack.State == jobs.Running && rep.Workers[0].State == jobs.WorkerReady && g.Spec.Args[0] != "wait" {
			o.h.end(&rep, &g.Spec)
			continue
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-o.loop.Stopped.Done():
		}
	}
}

// end is the end of workers.
func (h *home) end(rep *wire.Report, spec *jobs.Spec) {
	text := strings.Join(spec.Args[1:], " ")
	for i := range rep.Workers {
		w := &rep.Workers[i]
		w.State, w.Exit = jobs.WorkerEnded, &work.Exit{Cause: work.Exited}
		switch spec.Args[0] {
		case "fail":
			fmt.Sscan(text, &w.Exit.Code)
			continue
		case "retry":
			w.Exit.Code = 9
			text = fmt.Sprintf("rank %d, attempt %d", w.Rank, w.Attempt)
		}
		w.Stdout = int64(len(text) + 1)
		rep.Output = append(rep.Output, jobs.Output{Rank: w.Rank, Attempt: w.Attempt, Stream: work.Stdout, Data: []byte(text + "\n")})
		if len(spec.Outputs) > 0 {
			w.Output = h.file(w.RankAttempt, text)
		}
	}
}

// file puts a file "left" into the store, as the other node would have it.
func (h *home) file(ra jobs.RankAttempt, text string) *jobs.RankOutput {
	path := filepath.Join(h.t.TempDir(), "left")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		h.t.Error(err)
	}
	tree, err := transfer.Ingest(context.Background(), h.store, []transfer.Input{{Path: path, Name: "left"}})
	if err != nil {
		h.t.Error(err)
	}
	hash, err := transfer.SaveManifest(h.store, tree)
	if err != nil {
		h.t.Error(err)
	}
	return &jobs.RankOutput{Rank: ra.Rank, Attempt: ra.Attempt, Manifest: hash, Files: 1, Bytes: int64(len(text))}
}

// follow tells how a job ends that another one waits for.
func (o owner) follow(e core.DoFollow) {
	st, version, err := o.Status(e.After)
	for err == nil && !st.State.Final() {
		st, version, err = o.Await(context.Background(), e.After, version)
	}
	if !errors.Is(err, jobs.ErrStopped) { // else it is not known any more: ""
		o.loop.Post(func() {
			o.core.Update(time.Now(), e.Job, func(p *primary.Primary) { p.Followed(time.Now(), e.After, st.State) })
		})
	}
}

// around is the network of a home.
type around struct{ h *home }

func (a around) Member(id vicinity.ID) (vicinity.Member, bool)       { return a.h.other, id == a.h.other.ID }
func (a around) Measured(vicinity.ID, time.Duration) time.Duration   { return time.Millisecond }
func (a around) Nearer(time.Duration, int) []vicinity.Measured       { return nil }
func (a around) Speed(vicinity.ID) (none vicinity.Speed)             { return none }
func (a around) Distance(vicinity.ID, vicinity.ID) (d time.Duration) { return d }
func (a around) Size() int                                           { return 2 }
func (a around) Bearings() []byte                                    { return nil }
func (a around) Placed(vicinity.ID, []byte)                          {}

func (a around) Flood(now time.Time, _ int, ad wire.Advertisement) (f flood.Flood) {
	l := a.h.life
	l.loop.Go(func() {
		l.loop.Post(func() {
			l.core.Received(time.Now(), a.h.other.ID, wire.Packet{Answer: &wire.Answer{Job: ad.Job, Round: ad.Round, Key: uint64(now.UnixNano()), Workers: ad.Wanted, Capacity: jobs.MaxRanks}})
		})
	})
	return f
}

// submit submits a job of workers with one slot each.
func (h *home) submit(spec jobs.Spec) jobs.ID {
	h.t.Helper()
	spec.Slots, spec.Min, spec.Max = 1, max(1, spec.Min), max(1, spec.Min)
	id, err := h.Submit(h.t.Context(), spec)
	if err != nil {
		h.t.Fatal(err)
	}
	return id
}

// await waits until a job is in one of the states.
func (h *home) await(id jobs.ID, states ...jobs.State) (st jobs.Status) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), time.Minute)
	defer cancel()
	for version := uint64(0); ; {
		var err error
		if st, version, err = h.Await(ctx, id, version); err != nil {
			h.t.Fatalf("job %s is %s (%s): %v", id, st.State, st.Reason, err)
		}
		if len(states) == 0 && st.State.Final() || slices.Contains(states, st.State) {
			return st
		}
	}
}

// one has a job print a line and leave a file, and waits for its end.
func (h *home) one(text string) jobs.ID {
	h.t.Helper()
	id := h.submit(jobs.Spec{Name: "say " + text, Args: []string{"say", text}, Outputs: []string{"left"}})
	if st := h.await(id); st.State != jobs.Completed || len(st.Outputs) != 1 {
		h.t.Fatalf("%s is %s: %s, with %d outputs", id, st.State, st.Reason, len(st.Outputs))
	}
	return id
}

// printed returns what a rank wrote to its standard output.
func (h *home) printed(id jobs.ID, rank int) string {
	h.t.Helper()
	var b strings.Builder
	if err := h.Output(h.t.Context(), id, jobs.OutputQuery{Rank: rank}, func(o jobs.Output) error { b.Write(o.Data); return nil }); err != nil {
		h.t.Fatal(err)
	}
	return b.String()
}

// faulty is a journal on a disk that can be full.
type faulty struct {
	*journal.Memory

	mu   sync.Mutex // guards what follows
	full bool
	held []func()
}

// faulty makes the node start anew with such a journal.
func (h *home) faulty() *faulty {
	f := &faulty{}
	h.stop()
	h.wrap = func(m *journal.Memory) journal.Journal { f.Memory = m; return f }
	h.start()
	return f
}

func (f *faulty) write(do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.full {
		f.held = append(f.held, do)
	} else {
		do()
	}
}

func (f *faulty) Append(entries []journal.Entry, done func(error)) {
	f.write(func() { f.Memory.Append(entries, done) })
}

func (f *faulty) Delete(key string, done func(error)) {
	f.write(func() { f.Memory.Delete(key, done) })
}

func (f *faulty) Replace(e journal.Entry, done func(error)) {
	f.write(func() { f.Memory.Replace(e, done) })
}

// Stalled is as that of a real journal.
func (f *faulty) Stalled() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.full {
		return syscall.ENOSPC
	}
	return nil
}

// fill fills the disk, or makes room again.
func (f *faulty) fill(full bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.full = full; full {
		return
	}
	for _, do := range f.held {
		do()
	}
	f.held = nil
}
