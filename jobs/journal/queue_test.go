package journal

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func TestFullDiskIsWaitedFor(t *testing.T) {
	for _, cause := range []error{syscall.ENOSPC, syscall.EDQUOT} {
		synctest.Test(t, func(t *testing.T) {
			q := newQueue()
			ctx, cancel := context.WithCancel(t.Context())
			var full atomic.Bool
			full.Store(true)
			var written atomic.Int64
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				q.run(ctx, func(ops []op) error {
					if full.Load() {
						return fmt.Errorf("write: %w", cause)
					}
					written.Add(int64(len(ops)))
					return nil
				})
			}()
			var mu sync.Mutex
			var order []string
			for _, data := range []string{"one", "two"} {
				q.Append([]Entry{entry("a", data)}, func(err error) {
					mu.Lock()
					defer mu.Unlock()
					order = append(order, fmt.Sprint(data, err))
				})
			}
			time.Sleep(time.Minute)
			mu.Lock()
			if len(order) != 0 || !errors.Is(q.Stalled(), cause) {
				t.Fatalf("done with %q, stalled is %v", order, q.Stalled())
			}
			mu.Unlock()
			full.Store(false)
			time.Sleep(2 * againAfter)
			mu.Lock()
			if fmt.Sprint(order) != "[one<nil> two<nil>]" || written.Load() != 2 || q.Stalled() != nil {
				t.Errorf("done with %q, wrote %d, stalled is %v", order, written.Load(), q.Stalled())
			}
			mu.Unlock()

			full.Store(true)
			var last error
			q.Append([]Entry{entry("a", "three")}, func(err error) { last = err })
			time.Sleep(time.Minute)
			cancel()
			<-ended
			if !errors.Is(last, cause) {
				t.Errorf("at the end: %v", last)
			}
		})
	}
}
