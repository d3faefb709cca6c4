package participant

import (
	"slices"
	"testing"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/hours"
	"zorilla/jobs/internal/claims"
	"zorilla/jobs/internal/wire"
)

// until returns limits of an owner whose hours end in so long, which is some minutes.
func until(h *hand, left time.Duration, after string) jobs.Limits {
	now := h.now.UTC()
	week, err := hours.Parse(now.Add(-time.Hour).Format("Mon 15:04-") + now.Add(left).Format("15:04"))
	if err != nil {
		h.t.Fatal(err)
	}
	return jobs.Limits{TimeLimits: jobs.TimeLimits{Hours: week, AfterHours: after}}
}

// The machine is free when the hours end, if its owner wants that.
func TestWorkersEndWithTheHours(t *testing.T) {
	const left = 20 * time.Minute
	for name, c := range map[string]struct {
		after  string
		spec   jobs.Spec
		begins time.Duration // when the owner says so, after the worker has begun
		at     time.Duration // when it is told to end, after that
		notice time.Duration // -1 = it is not
	}{
		"finish":             {"", jobs.Spec{}, 0, 0, -1},
		"no notice":          {jobs.HoursEnd, jobs.Spec{}, 0, left - StopGrace, 0},
		"notice":             {jobs.HoursEnd, jobs.Spec{Notices: jobs.Notices{Signal: "USR1@60s"}}, 0, left - StopGrace - time.Minute, time.Minute},
		"long notice":        {jobs.HoursEnd, jobs.Spec{Notices: jobs.Notices{Signal: "USR1@1h"}}, 0, left - StopGrace - claims.HoursNotice, claims.HoursNotice},
		"less time left":     {jobs.HoursEnd, jobs.Spec{Notices: jobs.Notices{Signal: "USR1@1h"}}, 17 * time.Minute, 17 * time.Minute, 3*time.Minute - StopGrace},
		"no time left":       {jobs.HoursEnd, jobs.Spec{Notices: jobs.Notices{Signal: "USR1@1h"}}, left - time.Second, left - time.Second, 0},
		"after the hours":    {jobs.HoursEnd, jobs.Spec{Notices: jobs.Notices{Signal: "USR1@1h"}}, left + time.Minute, left + time.Minute, claims.HoursNotice},
		"ends by itself":     {jobs.HoursEnd, jobs.Spec{Walltime: codec.Duration(left)}, 0, left, 0},
		"would end too late": {jobs.HoursEnd, jobs.Spec{Walltime: codec.Duration(left + time.Second)}, 0, left - StopGrace, 0},
	} {
		h := newHand(t, 1)
		h.now = h.now.Truncate(time.Minute)
		if err := h.grant(c.spec, 0, 1); err != nil {
			t.Fatal(err)
		}
		h.p.Claimed(h.now, h.id(0), nil, h.now)
		h.p.Laid(h.now, h.id(0), nil, h.now)
		h.start(0)
		take[DoEnd](h)
		begun, limits, at, notice := h.now, until(h, left, c.after), time.Duration(0), time.Duration(-1)
		h.now = begun.Add(c.begins)
		h.p.Claims.Limit(limits)
		for h.now.Before(begun.Add(left+2*time.Minute)) && notice < 0 {
			h.p.Tick(h.now)
			for _, e := range take[DoEnd](h) {
				at, notice = h.now.Sub(begun), e.Notice
			}
			if wake := h.p.Wake(); h.now.Before(wake) && wake.Before(begun.Add(left)) {
				h.now = wake
			} else {
				h.now = h.now.Add(time.Second)
			}
		}
		if at != c.at || notice != c.notice {
			t.Errorf("%s: it is told to end after %v with notice %v, want %v, %v", name, at, notice, c.at, c.notice)
		}
		if k := h.p.Works[h.job].find(h.id(0).RankAttempt); notice >= 0 && k.lost != hoursOver {
			t.Errorf("%s: it ends since %q", name, k.lost)
		}
	}
}

// A worker of a job without a walltime keeps the owner's, whatever that is later, and in the node's next life.
func TestOwnersWalltime(t *testing.T) {
	for walltime, want := range map[time.Duration]time.Duration{0: time.Hour, time.Minute: time.Minute} {
		h := newHand(t, 1)
		h.p.Claims.Limit(jobs.Limits{TimeLimits: jobs.TimeLimits{MaxWalltime: codec.Duration(time.Hour)}})
		if err := h.grant(jobs.Spec{Walltime: codec.Duration(walltime)}, 0, 1); err != nil {
			t.Fatal(err)
		}
		h.p.Claims.Limit(jobs.Limits{})
		h.p.Claimed(h.now, h.id(0), nil, h.now)
		h.p.Laid(h.now, h.id(0), nil, h.now)
		h.p.Started(h.now, &wire.Start{Job: h.job, Size: 8, Ranks: []jobs.RankAttempt{h.id(0).RankAttempt}})
		runs := take[DoRun](h)
		if len(runs) != 1 || runs[0].Claim.Walltime() != want || (runs[0].Claim.Allowed > 0) != (walltime == 0) {
			t.Fatalf("it runs as %+v, want for %v", runs, want)
		}
		next := newHand(t, 1)
		next.p.Adopt(next.now, runs[0].Claim)
		if got := next.p.Works[h.job].Workers[0]; got.allowed != runs[0].Claim.Allowed {
			t.Errorf("then it may run for %v", got.allowed)
		}
	}
}

func TestSparesEndWithTheHours(t *testing.T) {
	h := newHand(t, 1)
	h.p.Claims.Limit(until(h, -30*time.Minute, ""))
	h.p.Claims.Spares[h.job] = &claims.Spares{Workers: 1}
	h.p.Works[h.job] = &Work{part: &h.p, Job: h.job}
	h.p.Claims.Jobs[h.job]++
	h.p.Tick(h.now)
	if len(h.p.Claims.Spares) > 0 || slices.ContainsFunc(h.p.All(), func(w *Work) bool { return w.spares() != nil }) {
		t.Errorf("it still has spares: %v", h.p.Claims.Spares)
	}
}
