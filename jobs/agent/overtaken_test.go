package agent

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/wire"
)

// A grant that comes before the workers of an earlier attempt are gone is taken once they are.
func TestGrantsWaitForEarlierWorkers(t *testing.T) {
	earlier, other := wire.Refusal(wire.ReasonEarlier), wire.Refusal(wire.ReasonLate)
	for name, c := range map[string]struct {
		gone  time.Duration // when they are
		then  error
		want  error
		after time.Duration
	}{
		"they are gone":       {0, nil, nil, 0},
		"they are soon":       {12 * time.Millisecond, nil, nil, 15 * time.Millisecond},
		"the offer has ended": {12 * time.Millisecond, other, other, 15 * time.Millisecond},
		"they stay":           {time.Hour, nil, earlier, maxOvertaking},
	} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			err := overtaken(t.Context(), func() error {
				if time.Since(began) < c.gone {
					return earlier
				}
				return c.then
			})
			if after := time.Since(began); !errors.Is(err, c.want) || after != c.after {
				t.Errorf("%s: got %v after %v, want %v after %v", name, err, after, c.want, c.after)
			}
		})
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	tries := 0
	if err := overtaken(ctx, func() error { tries++; return earlier }); !errors.Is(err, jobs.ErrRefused) || tries != 1 {
		t.Errorf("at a node that is being stopped: %v, after %d tries", err, tries)
	}
}
