package node

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
)

// On a busy machine a node waits until it knows what it can enforce, logs that, and gives up at last.
func TestProbeOfABusyMachine(t *testing.T) {
	for _, c := range []struct {
		takes, waits time.Duration
		warned       int
		want         error
	}{
		{time.Millisecond, time.Millisecond, 0, nil},
		{95 * time.Second, 95 * time.Second, 9, nil},
		{time.Hour, probeTimeout, int(probeTimeout/probeSlow) - 1, context.DeadlineExceeded},
	} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			begun := time.Now()
			err := probe(t.Context(), zerolog.New(&log), func(ctx context.Context) error {
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-time.After(c.takes):
					return nil
				}
			})
			warned := strings.Count(log.String(), "what the sandbox can enforce")
			if took := time.Since(begun); took != c.waits || warned < c.warned || warned > c.warned+1 || !errors.Is(err, c.want) {
				t.Errorf("it takes %v: %v after %v, %d warnings, want %v after %v, %d", c.takes, err, took, warned, c.want, c.waits, c.warned)
			}
		})
	}
}
