package participant

import (
	"errors"
	"testing"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/internal/wire/wiretest"
	"zorilla/transfer"
)

// spared is a node that keeps two spares of a job with inputs.
func spared(t *testing.T) (h *hand, g *wire.Grant) {
	t.Helper()
	h = newHand(t, 4)
	ad := wiretest.Ad(h.origin, "aaaaa", 2, 1)
	ad.Job = h.job
	g = &wire.Grant{Job: h.job, Key: h.p.Claims.Advertised(h.now, ad).Key, Spares: 2,
		Spec: jobs.Spec{Args: []string{"prog"}, Slots: 1, Min: 4, Max: 8, Inputs: transfer.Hash{1}}}
	if err := h.p.Granted(h.now, h.origin, g); err != nil {
		t.Fatal(err)
	}
	return h, g
}

// have checks the spares of the next report, which the origin answers so.
func (h *hand) have(want *wire.Spares, ack *wire.Ack) {
	h.t.Helper()
	h.now = h.now.Add(wire.ReportEvery)
	got := h.report(ack).Spares
	if (got == nil) != (want == nil) || got != nil && *got != *want {
		h.t.Fatalf("the report has %+v, want %+v", got, want)
	}
}

// over checks that nothing is left of the job.
func (h *hand) over(what string) {
	h.t.Helper()
	h.p.Tick(h.now)
	if c := h.p.Claims; len(h.p.Works) != 0 || c.Used.Slots != 0 || len(c.Jobs) != 0 || len(c.Ending) != 0 {
		h.t.Errorf("%s: %d jobs are here, %d slots used, by %d jobs, %d ending", what, len(h.p.Works), c.Used.Slots, len(c.Jobs), len(c.Ending))
	}
}

// The node has the inputs of a job whose spares it keeps, so that a rank begins at once.
func TestSparesHaveTheInputs(t *testing.T) {
	h, g := spared(t)
	if f := take[DoFetch](h); len(f) != 1 || f[0].Inputs != g.Spec.Inputs {
		t.Fatalf("%+v are fetched", f)
	}
	known := &wire.Ack{Known: true}
	h.have(&wire.Spares{Key: g.Key, Workers: 2}, known)
	h.p.Fetched(h.now, h.job, nil)
	h.have(&wire.Spares{Key: g.Key, Workers: 2, Ready: true}, known)
	rank := *g
	rank.Spares, rank.Ranks = 0, []jobs.RankAttempt{wiretest.RA(3, 2)}
	if err := h.p.Granted(h.now, h.origin, &rank); err != nil {
		t.Fatal(err)
	}
	for _, e := range take[DoClaim](h) {
		h.p.Claimed(h.now, e.Worker, nil, h.now)
	}
	if lay := take[DoLay](h); len(lay) != 1 || lay[0].Worker.Rank != 3 {
		t.Fatalf("%+v are laid out", lay)
	}
	if f := take[DoFetch](h); len(f) > 0 {
		t.Errorf("%+v are fetched once more", f)
	}
	h.have(&wire.Spares{Key: g.Key, Workers: 1, Ready: true}, known)
}

func TestSparesAreGivenBack(t *testing.T) {
	known := &wire.Ack{Known: true}
	for name, ends := range map[string]func(h *hand, had *wire.Spares){
		"the job is not known": func(h *hand, had *wire.Spares) {
			h.p.Acknowledged(h.now, &wire.Report{Job: h.job, Spares: had}, false, wire.Ack{})
		},
		"they are not wanted": func(h *hand, had *wire.Spares) {
			h.have(had, &wire.Ack{Known: true, NoSpares: true})
			h.have(nil, known)
		},
		"the origin ends them": func(h *hand, _ *wire.Spares) { h.p.WorkFor(h.origin, h.job).LetSparesGo(h.now) },
		"the job ends":         func(h *hand, _ *wire.Spares) { h.p.WorkFor(h.origin, h.job).Want(h.now, WantDrop, nil) },
		"the node is drained":  func(h *hand, _ *wire.Spares) { h.p.GiveSparesBack(h.now); h.have(nil, known) },
		"the node leaves":      func(h *hand, _ *wire.Spares) { h.p.Leave(h.now, time.Minute); h.have(nil, known) },
		"the origin is silent": func(h *hand, had *wire.Spares) {
			h.have(had, nil)
			h.now = h.now.Add(wire.PartLease)
			h.have(had, nil)
		},
	} {
		h, g := spared(t)
		h.p.Fetched(h.now, h.job, nil)
		ends(h, &wire.Spares{Key: g.Key, Workers: 2, Ready: true})
		h.over(name)
	}
	h, g := spared(t)
	h.p.Fetched(h.now, h.job, errors.New("nobody has them"))
	h.have(nil, known)
	h.over("the inputs are not to be had")
	if g.Spares != 2 {
		t.Error("the grant was changed")
	}
}

// An answer that is older than what is here ends nothing.
func TestSparesOfALaterGrantStay(t *testing.T) {
	h, g := spared(t)
	h.p.Claims.Spares[h.job].Key++
	h.have(&wire.Spares{Key: g.Key + 1, Workers: 2}, &wire.Ack{Known: true})
	h.p.Acknowledged(h.now, &wire.Report{Job: h.job, Spares: &wire.Spares{Key: g.Key, Workers: 2}}, false, wire.Ack{Known: true, NoSpares: true})
	h.have(&wire.Spares{Key: g.Key + 1, Workers: 2}, &wire.Ack{Known: true})
}

// The end of the only rank at a node is not that of the job there, if it has spares.
func TestSparesOutlastRanks(t *testing.T) {
	h, g := spared(t)
	h.p.Fetched(h.now, h.job, nil)
	for attempt := 1; attempt <= 2; attempt++ {
		rank := *g
		rank.Spares, rank.Ranks = 0, []jobs.RankAttempt{wiretest.RA(3, attempt)}
		if err := h.p.Granted(h.now, h.origin, &rank); err != nil {
			t.Fatalf("attempt %d: %v", attempt, err)
		}
		for _, e := range take[DoClaim](h) {
			h.p.Claimed(h.now, e.Worker, nil, h.now)
		}
		h.p.WorkFor(h.origin, h.job).Want(h.now, WantDrop, rank.Ranks)
	}
}
