package executor

import (
	"context"
	"time"
)

// Between two tries to remove a root.
const (
	firstRemoval   = time.Second
	longestRemoval = 5 * time.Minute
)

// again removes what could not be removed, until ctx ends, as what stood in the way may pass: a
// process that the kernel had not ended, a disk that was full.
func again(ctx context.Context, remove func() error) {
	for pause := firstRemoval; ; pause = min(2*pause, longestRemoval) {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
		if remove() == nil {
			return
		}
	}
}
