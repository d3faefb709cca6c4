package testnet

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"zorilla/jobs/process"
	"zorilla/jobs/process/workertest"
)

// TestEmulatedWorkers holds emulated workers to what real ones do.
func TestEmulatedWorkers(t *testing.T) {
	programs := map[string]Program{}
	for name, p := range workertest.Programs() {
		programs[name] = programOf(p)
	}
	workertest.Run(t, workertest.Kit{
		Runner: func(grace time.Duration, spool int64) workertest.Runner {
			r := NewRunner(programs)
			r.grace, r.spool = grace, spool
			return r
		},
		Spec: func(spec *process.Spec, program string, args ...string) {
			spec.Args = append([]string{program}, args...)
		},
		Ended: func(t *testing.T, r workertest.Runner, root string) { <-r.(*Runner).roots[root].main.killed },
		Clean: func(r workertest.Runner, root string) error {
			r.(*Runner).Kill()
			return process.CleanFiles(root, nil)
		},
		In: func(t *testing.T, test func(t *testing.T)) { synctest.Test(t, test) },
	})
}

// errDead unwinds a program that a signal has ended.
var errDead = errors.New("ended by a signal")

// programOf makes a program of the suite one of a fake worker.
func programOf(p workertest.Program) Program {
	return func(ctx context.Context, w *FakeWorker) (code int) {
		defer func() {
			if r := recover(); r == errDead {
				code = -sigTerm
			} else if r != nil {
				panic(r)
			}
		}()
		term := ctx.Done()
		return p(&workertest.Self{
			Args: w.Args[1:], Dir: w.Dir, Getenv: w.Getenv, Stdin: w.Stdin, Stdout: w.Stdout, Stderr: w.Stderr,
			Trap: func() <-chan struct{} {
				w.Trap()
				term = nil
				return ctx.Done()
			},
			Handle: func(int) <-chan int {
				told := make(chan int)
				go func() {
					select {
					case n := <-w.Signals:
						told <- n
					case <-w.Killed:
						close(told)
					}
				}()
				return told
			},
			Sleep: func() {
				select {
				case <-term:
				case <-w.Killed:
				}
				panic(errDead)
			},
			Spawn: func(name string) { w.Spawn(programOf(workertest.Programs()[name])) },
			Hold:  func(bytes int) { w.Hold(int64(bytes)) },
			Fill:  func(bytes int) { w.Fill(int64(bytes)) },
		})
	}
}
