package remover

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// quickly is how many entries are removed at once: those of most workers. More of
	// them wait for each other.
	quickly = 2000
	// A removal that is not quick works for so long, and then leaves the disk to others
	// for as long.
	burst = 10 * time.Millisecond
	// lowly is how much nicer a thread is that removes what is not quick.
	lowly = 10
)

var errMany = errors.New("many files")

// Background removes what may be large: the first entries at once, more of them one tree after
// the other, on a thread of low priority that pauses half of the time. Its methods may be
// called from any goroutine.
type Background struct {
	slow chan struct{} // capacity 1: filled while a large tree is removed

	mu   sync.Mutex               // guards what follows
	busy map[string]chan struct{} // trees that somebody has
}

// NewBackground returns an idle Background.
func NewBackground() *Background {
	return &Background{slow: make(chan struct{}, 1), busy: map[string]chan struct{}{}}
}

// Run has f remove a tree, by the paces that it is given: f may be called twice. When
// ctx ends a large tree is left as it is then, with the error of ctx.
func (b *Background) Run(ctx context.Context, f func(Pace) error) error {
	err := f(Budget(quickly))
	if !errors.Is(err, errMany) {
		return err
	}
	select {
	case b.slow <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-b.slow }()
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // until its end: nobody gets this thread back
		lower()
		done <- f(slowly(ctx))
	}()
	return <-done
}

// Wait waits until nobody has a tree any more.
func (b *Background) Wait(name string) { b.Enter(name)() }

// Enter takes a tree, by its name, as soon as nobody has it, until leave is called.
func (b *Background) Enter(name string) (leave func()) {
	for {
		b.mu.Lock()
		other := b.busy[name]
		if other == nil {
			break
		}
		b.mu.Unlock()
		<-other
	}
	defer b.mu.Unlock()
	mine := make(chan struct{})
	b.busy[name] = mine
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.busy, name)
		close(mine)
	}
}

// Budget is a pace that ends a removal after so many entries, with an error that
// IsOverBudget recognizes.
func Budget(entries int) Pace {
	return func() error {
		if entries--; entries < 0 {
			return errMany
		}
		return nil
	}
}

// IsOverBudget reports whether an error is that of a Budget that is spent.
func IsOverBudget(err error) bool { return errors.Is(err, errMany) }

// slowly is a pace with pauses, until ctx ends.
func slowly(ctx context.Context) Pace {
	since := time.Now()
	return func() error {
		if err := ctx.Err(); err != nil {
			return err
		}
		worked := time.Since(since)
		if worked < burst {
			return nil
		}
		pause := time.NewTimer(min(worked, time.Second))
		defer pause.Stop()
		select {
		case <-pause.C:
		case <-ctx.Done():
		}
		since = time.Now()
		return nil
	}
}

// lower makes the calling thread yield to others, at the processors and at the disk, as
// far as the system lets it.
func lower() {
	if now, err := niceness(); err == nil {
		_ = unix.Setpriority(unix.PRIO_PROCESS, 0, min(now+lowly, 19))
	}
	const process, bestEffort, last = 1, 2 << 13, 7
	_, _, _ = unix.RawSyscall(unix.SYS_IOPRIO_SET, process, 0, bestEffort|last)
}

// niceness is that of the calling thread.
func niceness() (int, error) {
	n, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	return 20 - n, err // the kernel knows no negative results
}
