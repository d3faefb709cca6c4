package participant

import (
	"slices"
	"testing"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/wire"
)

// A program hears of its end before it is ended, unless nobody wants what it makes then.
func TestNoticeBeforeTheEnd(t *testing.T) {
	const hour = "USR1@1h"
	stop := func(notice bool) func(*hand) {
		return func(h *hand) {
			h.report(&wire.Ack{Workers: []wire.WorkerAck{{RankAttempt: jobs.RankAttempt{Attempt: 1}, Stop: true, Notice: notice}}})
		}
	}
	drop := func(h *hand) {
		h.report(&wire.Ack{Workers: []wire.WorkerAck{{RankAttempt: jobs.RankAttempt{Attempt: 1}, Drop: true}}})
	}
	evict := func(how Wish) func(*hand) { return func(h *hand) { h.p.EvictAll(h.now, how, wire.ReasonDraining) } }
	gang := func(failed bool) func(*hand) {
		return func(h *hand) { h.p.GangLost(h.now, wire.Gang{Job: h.job}, "no word", failed) }
	}
	for name, c := range map[string]struct {
		signal string
		events []func(*hand)
		want   []time.Duration // the notice of each end
	}{
		"stop":                     {hour, []func(*hand){stop(true), stop(true)}, []time.Duration{time.Hour}},
		"stop of a job that fails": {hour, []func(*hand){stop(false), stop(true)}, []time.Duration{0}},
		"stop, job fails":          {hour, []func(*hand){stop(true), stop(false)}, []time.Duration{time.Hour, 0}},
		"not asked for":            {"", []func(*hand){stop(true)}, []time.Duration{0}},
		"drop":                     {hour, []func(*hand){drop}, []time.Duration{0}},
		"stop, drop":               {hour, []func(*hand){stop(true), drop}, []time.Duration{time.Hour, 0}},
		"evict":                    {hour, []func(*hand){evict(WantEvict), evict(WantEvict)}, []time.Duration{MaxNotice}},
		"evict, short":             {"USR1@3s", []func(*hand){evict(WantEvict)}, []time.Duration{3 * time.Second}},
		"evict, stop":              {hour, []func(*hand){evict(WantEvict), stop(true)}, []time.Duration{MaxNotice, MaxNotice}},
		"evict now":                {hour, []func(*hand){evict(WantEvict | WantNow)}, []time.Duration{0}},
		"evict, now":               {hour, []func(*hand){evict(WantEvict), evict(WantEvict | WantNow)}, []time.Duration{MaxNotice, 0}},
		"gang lost":                {hour, []func(*hand){gang(false)}, []time.Duration{0}},
		"gang failed":              {hour, []func(*hand){gang(true)}, []time.Duration{0}},
		"stop, gang failed":        {hour, []func(*hand){stop(true), gang(true)}, []time.Duration{time.Hour, 0}},
	} {
		h := newHand(t, 1)
		if err := h.grant(jobs.Spec{Notices: jobs.Notices{Signal: c.signal}}, 0, 1); err != nil {
			t.Fatal(err)
		}
		h.p.Claimed(h.now, h.id(0), nil, h.now)
		h.p.Laid(h.now, h.id(0), nil, h.now)
		h.start(0)
		var got []time.Duration
		for _, happens := range c.events {
			happens(h)
			for _, e := range take[DoEnd](h) {
				got = append(got, e.Notice)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: it is told to end with notices %v, want %v", name, got, c.want)
		}
	}
}
