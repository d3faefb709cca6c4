package core

import (
	"testing"
	"time"

	"zorilla/flood"
	"zorilla/jobs"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/primary"
	"zorilla/jobs/internal/wire"
	"zorilla/vicinity"
)

// few is a network in which only these nodes are members.
type few map[vicinity.ID]vicinity.Member

func (f few) Member(id vicinity.ID) (vicinity.Member, bool)                { m, ok := f[id]; return m, ok }
func (f few) Measured(vicinity.ID, time.Duration) time.Duration            { return time.Millisecond }
func (f few) Nearer(time.Duration, int) []vicinity.Measured                { return nil }
func (f few) Distance(a, b vicinity.ID) time.Duration                      { return 0 }
func (f few) Size() int                                                    { return 2 }
func (f few) Flood(time.Time, int, wire.Advertisement) (flood flood.Flood) { return flood }
func (f few) Bearings() []byte                                             { return nil }
func (f few) Placed(vicinity.ID, []byte)                                   {}

// A node that has just come, or is gone, is granted nothing before it is a member: it
// has no name, and nobody could be told where it is.
func TestOffersOfStrangersAreNotTaken(t *testing.T) {
	self, other := vicinity.Member{ID: jobtest.Node(1)}, jobtest.Node(2)
	for name, members := range map[string]few{"": {}, "other": {other: {ID: other, Name: "other"}}} {
		c := New(self, members, jobtest.Rand(), time.Hour)
		now := jobtest.Start
		id := jobs.NewID(jobtest.Rand(), self.ID)
		c.Submit(now, id, jobs.Spec{Args: []string{"prog"}, Min: 1, Max: 1, Slots: 1}, 0)
		granted := "nobody"
		for step := range 20 {
			list, _ := c.Advance(now)
			for _, a := range list {
				switch e := a.Effect.(type) {
				case DoRecord:
					for _, ev := range e.Events {
						if ev.Node == other {
							granted = ev.Name
						}
					}
					c.Recorded(now, e.Job, e.Step)
				case primary.DoGrant:
					if e.To != other {
						t.Errorf("granted to %s", e.To)
					}
				}
			}
			if step == 3 {
				c.Received(now, other, wire.Packet{Answer: &wire.Answer{Job: id, Round: 1, Key: 1, Workers: 1, Capacity: 1}})
			}
			now = now.Add(50 * time.Millisecond)
		}
		if want := map[string]string{"": "nobody", "other": "other"}[name]; granted != want {
			t.Errorf("granted to %q, want %q", granted, want)
		}
	}
}
