package testnet

import (
	"context"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"zorilla/jobs/process"
	"zorilla/jobs/work"
)

// supervisor looks after one worker, for whichever node is there. When the worker
// ends, and why, is decided by a process.Life, as it is for real ones.
type supervisor struct {
	r     *Runner
	spec  process.Spec
	input *pipe  // nil without standard input
	main  *tree  // has no process of its own with tasks
	tasks *tasks // nil without tasks

	mu      sync.Mutex // guards what follows
	acked   sync.Cond  // output was acknowledged, or somebody is to end
	changed chan struct{}
	nodes   []*worker // that are connected
	out     [2]output
	exit    work.Exit
}

// output is a stream from the first byte that is not acknowledged.
type output struct {
	base int64
	data []byte
}

func (o *output) written() int64 { return o.base + int64(len(o.data)) }

// tree is the processes of a worker, or of one task. Its fields are guarded by
// supervisor.mu, but for those that never change.
type tree struct {
	s       *supervisor
	life    *process.Life
	ctx     context.Context // ends with SIGTERM
	cancel  context.CancelFunc
	killed  chan struct{} // closed when nothing of it is left
	signals chan int
	most    int64  // bytes of output; 0 = no limit
	over    func() // called with supervisor.mu when nothing of it is left

	timer   *time.Timer // for what life decides next
	procs   int         // that have not returned
	wrote   int64
	reaped  bool // the first one has
	trapped bool // it handles SIGTERM
}

func (s *supervisor) newTree(ctx context.Context, spec *process.Spec, over func()) *tree {
	t := &tree{s: s, life: process.NewLife(spec, s.r.grace), killed: make(chan struct{}), signals: make(chan int, 16), over: over}
	if spec.Tasks == nil {
		t.most = spec.MaxOutput
	}
	t.ctx, t.cancel = context.WithCancel(ctx)
	t.life.Begin(time.Now())
	t.life.NodeBack()
	return t
}

// start runs a program as a process of the tree; the first one is its main
// process.
func (t *tree) start(program Program, view *FakeWorker) {
	t.tell(func(*process.Life, time.Time) {
		first := t.procs == 0
		t.procs++
		go func() { t.returned(first, program(t.ctx, view)) }()
	})
}

// returned takes the end of a process; a negative code is a signal. What is told
// to end and does not handle that dies of the signal.
func (t *tree) returned(first bool, code int) {
	t.tell(func(l *process.Life, _ time.Time) {
		t.procs--
		if first {
			if !t.trapped && t.ctx.Err() != nil {
				code = -sigTerm
			}
			t.reap(code)
		}
		if t.procs == 0 {
			l.Gone()
		}
	})
}

func (t *tree) reap(code int) {
	status := syscall.WaitStatus(-code & 0x7f)
	if code >= 0 {
		status = syscall.WaitStatus(code & 0xff << 8)
	}
	t.reaped = true
	t.life.Exited(status)
}

// tell has f tell the life what happens now, and does what it decides.
func (t *tree) tell(f func(l *process.Life, now time.Time)) {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	if t.life.Phase() == process.Over {
		return
	}
	now := time.Now()
	f(t.life, now)
	t.life.Tick(now)
	t.obey(now)
}

// obey does what the life has decided. The caller holds supervisor.mu.
func (t *tree) obey(now time.Time) {
	if t.life.Signals() {
		t.signal(t.s.spec.Rank.Signal)
	}
	switch phase := t.life.Phase(); {
	case phase == process.Ending:
		t.stop()
	case phase == process.Killing && t == t.s.main && t.s.tasks != nil:
		t.life.Finished()
	case phase == process.Killing: // nobody sees what a function does from now on
		t.die()
	}
	if t.timer != nil {
		t.timer.Stop()
	}
	if t.life.Phase() == process.Over {
		t.stop()
		close(t.killed)
		t.over()
		return
	}
	if next := t.life.Next(); !next.IsZero() {
		t.timer = time.AfterFunc(next.Sub(now), func() { t.tell(func(*process.Life, time.Time) {}) })
	}
}

// signal sends a signal to the processes that handle it.
func (t *tree) signal(number int) {
	select {
	case t.signals <- number:
	default:
	}
}

// stop is the SIGTERM of all processes.
func (t *tree) stop() {
	t.cancel()
	t.s.acked.Broadcast()
	if t == t.s.main && t.s.input != nil {
		t.s.input.broken = true
		t.s.input.changed.Broadcast()
	}
}

// kill ends all processes at once, as the kernel or a failing machine would.
func (t *tree) kill() { t.tell(func(*process.Life, time.Time) { t.die() }) }

func (t *tree) die() {
	if !t.reaped {
		t.reap(-sigKill)
	}
	t.life.Gone()
}

// ended tells the nodes that the worker has ended. The caller holds mu.
func (s *supervisor) ended() {
	if s.exit.Cause == "" {
		s.exit = s.main.life.Exit()
	}
	s.exit.Ended = time.Now()
	if s.exit.Cause == work.Full {
		for _, dir := range append(process.FileDirs(s.spec.Root), s.spec.Work()) {
			_ = os.RemoveAll(dir)
		}
	}
	if s.tasks != nil && s.tasks.now != nil {
		s.tasks.now.die()
		s.tasks.now.obey(s.exit.Ended)
	}
	close(s.changed)
	s.r.forget(s) // first: who waits for done sees the runner without it
	for _, w := range s.nodes {
		close(w.done)
	}
	s.nodes = nil
}

// attach gives a node its view of the worker.
func (s *supervisor) attach() *worker {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := &worker{s: s, done: make(chan struct{})}
	if s.main.life.Phase() == process.Over {
		close(w.done)
		return w
	}
	s.nodes = append(s.nodes, w)
	s.main.life.NodeBack()
	s.main.obey(time.Now())
	return w
}

// detach lets a node go. The caller holds mu.
func (s *supervisor) detach(w *worker) {
	s.nodes = slices.DeleteFunc(s.nodes, func(other *worker) bool { return other == w })
	if len(s.nodes) == 0 && s.main.life.Phase() != process.Over {
		now := time.Now()
		s.main.life.NodeLost(now)
		s.main.obey(now)
	}
}

// moved reports a change. The caller holds mu.
func (s *supervisor) moved() {
	if s.main.life.Phase() != process.Over {
		close(s.changed)
		s.changed = make(chan struct{})
	}
}

// write appends to a stream for a process of the tree; it waits while too much is
// not acknowledged.
func (t *tree) write(stream work.Stream, p []byte) (int, error) {
	s := t.s
	s.mu.Lock()
	defer s.mu.Unlock()
	o, n := &s.out[stream-work.Stdout], 0
	for n < len(p) {
		if t.life.Phase() == process.Over || s.main.life.Phase() == process.Over {
			return n, syscall.EPIPE
		}
		room := min(int(s.r.spool)-len(o.data), len(p)-n)
		if t.most > 0 && t.wrote == t.most {
			t.life.Overflowed()
			t.obey(time.Now())
			continue
		}
		if room <= 0 {
			if t.ctx.Err() != nil && !t.trapped {
				return n, syscall.EPIPE
			}
			s.acked.Wait()
			continue
		}
		if t.most > 0 {
			room = min(room, int(t.most-t.wrote))
		}
		o.data = append(o.data, p[n:n+room]...)
		n, t.wrote = n+room, t.wrote+int64(room)
		s.moved()
	}
	return n, nil
}
