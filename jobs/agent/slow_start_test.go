package agent_test

import (
	"testing"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/journal"
	"zorilla/transfer"
)

// slowJournal and slowStore take a minute each to be opened.
type (
	slowJournal struct{ *journal.Memory }
	slowStore   struct{ transfer.PinStore }
)

func (j slowJournal) Load(f func(journal.Entry) error) error {
	time.Sleep(time.Minute)
	return j.Memory.Load(f)
}

func (s slowStore) StartEviction() {
	time.Sleep(time.Minute)
	s.PinStore.StartEviction()
}

// Nobody is to blame for not having been heard by an origin that takes long to
// start, also if he was expected back meanwhile: the time to report begins when it
// listens.
func TestSlowStartOfTheOrigin(t *testing.T) {
	bubble(t, 3, 2, func(t *testing.T, g *grid) {
		n := g.node(0)
		const seconds = 400
		id := g.submit(0, jobs.Spec{Args: ticking(seconds), Min: 6, Max: 6, Outputs: []string{"left"}})
		g.await(0, id, time.Minute, func(st jobs.Status) bool { return st.State == jobs.Running })
		time.Sleep(2 * time.Second)
		g.node(1).stop() // which is waited for
		time.Sleep(time.Second)
		n.crash()
		g.node(1).start()
		n.wrap = func(m *journal.Memory) journal.Journal { return slowJournal{m} }
		n.wrapStore = func(s transfer.PinStore) transfer.PinStore { return slowStore{s} }
		n.start()
		time.Sleep(2 * time.Minute)
		g.sameAttempts(0, id, seconds)
	})
}
