package participant

import (
	"testing"

	"zorilla/jobs"
	"zorilla/jobs/groups"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/internal/wire/wiretest"
)

// Two groups of other needs, of which a choice of nodes says how large each is.
func twoGroups() jobs.Spec {
	return jobs.Spec{Args: []string{"prog"}, Min: 2, Max: 6, Slots: 1, Topology: groups.Topology{Groups: []groups.Group{
		{Name: "a", Min: 1, Max: 3}, {Name: "b", Min: 1, Max: 3, Slots: groups.Range{Min: 2}},
	}}}
}

// gang offers and grants workers of a job with groups of such sizes.
func (h *hand) gang(sizes []int, ranks ...jobs.RankAttempt) error {
	spec := twoGroups()
	ad := wiretest.Ad(h.origin, "aaaaa", 6, 1)
	ad.AskFor(&spec)
	ad.Job, ad.Where = h.job, ""
	a := h.p.Claims.Advertised(h.now, ad)
	err := h.p.Granted(h.now, h.origin, &wire.Grant{Job: h.job, Key: a.Key, Spec: spec.Sized(sizes), Ranks: ranks})
	h.p.Tick(h.now)
	return err
}

// gone has workers removed.
func (h *hand) gone() {
	for _, e := range take[DoLay](h) {
		h.p.Laid(h.now, e.Worker, nil, h.now)
	}
	for _, e := range take[DoRemove](h) {
		h.p.Removed(h.now, e.Worker)
	}
	h.report(&wire.Ack{})
	h.p.Tick(h.now)
}

// Each worker takes what its group needs, and gives that back.
func TestWorkersOfGroupsTakeWhatTheyNeed(t *testing.T) {
	h := newHand(t, 8)
	if err := h.gang([]int{2, 2}, wiretest.RA(1, 1), wiretest.RA(2, 1), wiretest.RA(3, 1)); err != nil {
		t.Fatal(err)
	}
	h.used(5)
	for _, e := range take[DoClaim](h) {
		if needs := e.Claim.Spec.Needs(e.Worker.Rank); needs.Slots != min(e.Worker.Rank, 2) {
			t.Errorf("rank %d takes %d slots", e.Worker.Rank, needs.Slots)
		}
		h.p.Claimed(h.now, e.Worker, nil, h.now)
	}
	h.p.Works[h.job].Want(h.now, WantDrop, nil)
	h.gone()
	h.used(0)
}

// If the origin has chosen other sizes before this node has heard that the first are void, its ranks are
// others: it takes none of them before the first are gone.
func TestOtherSizesAreRefusedBesideEarlierWorkers(t *testing.T) {
	h := newHand(t, 8)
	if err := h.gang([]int{2, 1}, wiretest.RA(1, 1)); err != nil {
		t.Fatal(err)
	}
	if err := h.gang([]int{1, 2}, wiretest.RA(2, 2)); wire.WhyRefused(err) != wire.ReasonEarlier {
		t.Errorf("other sizes give %v", err)
	}
	if err := h.gang([]int{2, 1}, wiretest.RA(2, 2)); err != nil { // a rank of the same job
		t.Error(err)
	}
	h.used(3)
	h.p.Works[h.job].Want(h.now, WantDrop, nil)
	for _, e := range take[DoClaim](h) {
		h.p.Claimed(h.now, e.Worker, nil, h.now)
	}
	h.gone()
	if err := h.gang([]int{1, 2}, wiretest.RA(1, 3)); err != nil {
		t.Errorf("when they are gone: %v", err)
	}
	h.used(2)
}
