package search

import (
	"strings"
	"testing"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/wire"
	"zorilla/vicinity"
)

// says has node n, which has 2 slots, 24 GiB and a GPU, answer that it could run so many
// workers.
func (h *hunt) says(n, capacity int, reason string) {
	m := vicinity.Member{ID: jobtest.Node(n), Slots: 2, Memory: 24 << 30, GPUs: 1}
	h.s.Answered(h.now, m, time.Duration(n)*time.Millisecond, wire.Answer{Round: len(h.s.Rounds), Capacity: capacity, Reason: reason}, false)
}

// outlook is what a user is told.
func (h *hunt) outlook() (text string, never bool) {
	o := h.s.Outlook(h.d)
	return o.Text(h.s.Tally()), o.Never()
}

func TestWhatNoMemberCanRun(t *testing.T) {
	for _, c := range []struct {
		spec     jobs.Spec
		capacity int
		reason   string
		want     string // "" = it may run some day
	}{
		{jobs.Spec{Memory: 800 << 30}, 0, wire.ReasonMemory, "no member has 800 GiB of memory, the largest has 24 GiB"},
		{jobs.Spec{Slots: 9}, 0, wire.ReasonSlots, "no member has 9 slots, the largest has 2"},
		{jobs.Spec{GPUs: 2}, 0, wire.ReasonGPUs, "no member has 2 GPUs, the largest has 1"},
		{jobs.Spec{Where: "false"}, 0, wire.ReasonWhere, "no member can run it"},
		{jobs.Spec{Access: jobs.Access{Mounts: []string{"/data"}}}, 0, wire.ReasonMount + " /data", "no member can run it"},
		{jobs.Spec{Memory: 20 << 30}, 0, wire.ReasonMemory, "no member can run it"}, // its owner gives less
		{jobs.Spec{Replicas: 4, Min: 2, Max: 2}, 2, "", "4 copies of a rank need 4 nodes, 3 are there"},
		{jobs.Spec{Min: 100, Max: 100}, 2, wire.ReasonBusy, "together they have room for 6, and there are no other members"},
		{jobs.Spec{Min: 7, Max: 100}, 2, wire.ReasonBusy, "together they have room for 6, and there are no other members"},
		{jobs.Spec{Min: 6, Max: 100}, 2, wire.ReasonBusy, ""},
		{jobs.Spec{}, 2, wire.ReasonBusy, ""},
		{jobs.Spec{}, 2, wire.ReasonPaused, ""},
		{jobs.Spec{}, 0, wire.ReasonDraining, ""},
		{jobs.Spec{Disk: 1 << 40}, 0, wire.ReasonDisk, ""},
		{jobs.Spec{}, 0, wire.ReasonBroken + ": no", ""},
	} {
		c.spec.Slots, c.spec.Min, c.spec.Max = max(c.spec.Slots, 1), max(c.spec.Min, 1), max(c.spec.Max, 1)
		h := newHunt(c.spec)
		h.s.Members = func() int { return 3 }
		h.next()
		for n := range 3 {
			if text, never := h.outlook(); never {
				t.Fatalf("%+v: after %d of 3 answers it says %s", c.spec, n, text)
			}
			h.says(n, c.capacity, c.reason)
		}
		text, never := h.outlook()
		if never != (c.want != "") || !strings.HasSuffix(text, c.want) {
			t.Errorf("%+v: %v, says %s, want %s", c.spec, never, text, c.want)
		}
	}
}

func TestNoMemberHasAGPU(t *testing.T) {
	h := newHunt(jobs.Spec{Min: 1, Max: 1, Slots: 1, GPUs: 1})
	h.s.Members = func() int { return 1 }
	h.next()
	h.s.Answered(h.now, vicinity.Member{ID: jobtest.Node(0), Slots: 2}, 0, wire.Answer{Round: 1, Reason: wire.ReasonGPUs}, false)
	if text, never := h.outlook(); !never || !strings.HasSuffix(text, "; no member has a GPU") {
		t.Errorf("says %s", text)
	}
}

// What is said changes with the members.
func TestMembersComeAndGo(t *testing.T) {
	h := newHunt(jobs.Spec{Min: 1, Max: 1, Slots: 1, Memory: 32 << 30})
	members := 2
	h.s.Members = func() int { return members }
	h.next()
	h.says(0, 0, wire.ReasonMemory)
	h.says(1, 0, wire.ReasonMemory)
	h.says(1, 0, wire.ReasonMemory) // again
	if text, never := h.outlook(); !never || !strings.HasSuffix(text, "no member has 32 GiB of memory, the largest has 24 GiB") {
		t.Errorf("says %s", text)
	}
	members++ // one comes
	if text, never := h.outlook(); never {
		t.Errorf("before it has answered: %s", text)
	}
	h.s.Answered(h.now, vicinity.Member{ID: jobtest.Node(2), Slots: 2, Memory: 64 << 30}, time.Millisecond, wire.Answer{Round: 1, Capacity: 1, Reason: wire.ReasonBusy}, false)
	if text, never := h.outlook(); never {
		t.Errorf("it can run the job: %s", text)
	}
	members--
	h.s.Gone(jobtest.Node(2))
	if text, never := h.outlook(); !never || !strings.HasSuffix(text, "the largest has 24 GiB") {
		t.Errorf("when it is gone: %s", text)
	}
}
