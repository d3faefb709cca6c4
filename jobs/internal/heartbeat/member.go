package heartbeat

import (
	"fmt"
	"slices"
	"time"

	"zorilla/internal/sanitize"
	"zorilla/internal/stall"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/pmi"
)

// Member is what a node knows of a gang that it runs ranks of. It is not safe for use by
// several goroutines.
type Member struct {
	id     wire.Gang
	hub    string // what people call the node of rank 0
	ranks  map[int]*rank
	passed int
	lost   string
	failed bool // that is a rank that has failed
	began  time.Time
	heard  time.Time // when the hub answered last; zero = never
	alone  bool      // the ranks of the hub have ended, and it is gone
	since  time.Time // when ranks waited first for one that has ended; zero = they do not
	stall  stall.Guard
}

// rank is one at this node.
type rank struct {
	waits int  // the latest barrier that it has come to
	open  bool // it has not passed that
	puts  []pmi.Put
	ended bool // it meets nobody any more
	left  bool // and how its process ended is known
}

// NewMember returns what a node begins with that runs these ranks.
func NewMember(now time.Time, id wire.Gang, ranks []int, hub string) *Member {
	m := &Member{id: id, hub: hub, ranks: map[int]*rank{}, began: now}
	for _, r := range ranks {
		m.ranks[r] = &rank{}
	}
	return m
}

// Waits says that a rank waits at a barrier, and reports whether that is to be told.
func (m *Member) Waits(r int, b pmi.Barrier) (news bool) {
	k := m.ranks[r]
	if k == nil {
		return false
	}
	k.waits, k.open, k.puts = b.Number, true, b.Puts
	m.passed = max(m.passed, b.Number-1) // more, if this is a later life of the node
	return m.meets() || m.behind() > 0
}

// behind returns the barrier that a rank here waits at though it was passed: an earlier
// life of the node has let others pass; 0 = none.
func (m *Member) behind() (barrier int) {
	for _, k := range m.ranks {
		if !k.ended && k.open && k.waits <= m.passed {
			return k.waits
		}
	}
	return 0
}

// Begun says that a rank begins, perhaps once more since it could not be started.
func (m *Member) Begun(r int) {
	if k := m.ranks[r]; k != nil {
		*k = rank{}
	}
}

// Ended says that a rank meets nobody any more: how its process ended is not known yet.
func (m *Member) Ended(r int) {
	if k := m.ranks[r]; k != nil {
		k.ended = true
	}
}

// Left says that the process of a rank has ended, and why the gang cannot go on without
// it, if that is so; failed = its program has failed. It reports whether that is to be told.
func (m *Member) Left(r int, why string, failed bool) (news bool) {
	k := m.ranks[r]
	if k == nil {
		return false
	}
	k.ended, k.left = true, true
	if why != "" && m.lost == "" {
		m.lost, m.failed = sanitize.OneLine(why), failed
	}
	return m.Done() || why != ""
}

// Done reports whether all ranks at this node have ended.
func (m *Member) Done() bool {
	for _, k := range m.ranks {
		if !k.left {
			return false
		}
	}
	return true
}

// meets reports whether all ranks here wait at the next barrier.
func (m *Member) meets() bool {
	for _, k := range m.ranks {
		if k.ended || !k.open || k.waits != m.passed+1 {
			return false
		}
	}
	return true
}

// waits reports whether a rank here waits at a barrier.
func (m *Member) waits() bool {
	for _, k := range m.ranks {
		if !k.ended && k.open {
			return true
		}
	}
	return false
}

// deserted says which rank another one waits for though it has ended, or "".
func (m *Member) deserted() string {
	gone := -1
	for n, k := range m.ranks {
		if k.ended {
			gone = max(gone, n)
		}
	}
	if !m.waits() || gone < 0 {
		return ""
	}
	return fmt.Sprintf("ranks wait for rank %d, which has ended", gone)
}

// Beat is what to tell the hub now.
func (m *Member) Beat() wire.Beat {
	b := wire.Beat{Gang: m.id, Passed: m.passed, Done: m.Done(), Lost: m.lost, Failed: m.failed}
	if n := m.behind(); n > 0 {
		b.Passed, b.Waits = n-1, n
	} else if m.meets() {
		b.Waits = m.passed + 1
		for _, k := range m.ranks {
			b.Puts = append(b.Puts, k.puts...)
		}
	}
	return b
}

// Answered takes the hub's answer, and returns what lets which ranks pass.
func (m *Member) Answered(now time.Time, b *wire.Beat, a *wire.BeatAnswer) (p pmi.Pass, ranks []int) {
	if a.Gone {
		m.alone = !m.heard.IsZero()
		return p, nil
	}
	m.heard = now
	if a.Lost != "" && m.lose(a.Lost) {
		m.failed = a.Failed
	}
	m.passed = max(m.passed, a.Passed)
	if b.Waits == 0 || a.Passed != b.Waits {
		return p, nil
	}
	for n, k := range m.ranks {
		if k.open && k.waits == b.Waits {
			k.open, k.puts = false, nil
			ranks = append(ranks, n)
		}
	}
	slices.Sort(ranks)
	return pmi.Pass{Number: a.Passed, Puts: a.Puts}, ranks
}

// Tick finds out whether the hub is lost, or ranks wait for others that have ended. How
// those ended may end the job first, and then says more.
func (m *Member) Tick(now time.Time) {
	if why := m.deserted(); why == "" {
		m.since = time.Time{}
	} else if m.since.IsZero() {
		m.since = now
	} else if now.Sub(m.since) > Silence {
		m.lose(why)
	}
	switch {
	case m.alone: // they need nobody, unless they wait
		if m.waits() {
			m.lose("ranks wait for those of " + m.hub + ", which have ended")
		}
	case m.heard.IsZero() && now.Sub(m.began) > First:
		m.lose(m.hub + ", which has rank 0, did not begin")
	case !m.heard.IsZero() && m.stall.Passed(now, m.heard.Add(Silence)):
		m.lose(fmt.Sprintf("no word from %s, which has rank 0, for %v", m.hub, Silence))
	}
}

// Patience is how long the hub may still be silent.
func (m *Member) Patience(now time.Time) time.Duration {
	until := m.began.Add(First)
	if m.alone {
		until = now.Add(Silence)
	} else if !m.heard.IsZero() {
		until = m.stall.Next(m.heard.Add(Silence))
	}
	return max(until.Sub(now), 0) + time.Millisecond
}

func (m *Member) lose(why string) bool {
	if m.lost != "" || m.Done() {
		return false
	}
	m.lost = sanitize.OneLine(why)
	return true
}

// Lost returns why the gang cannot go on, or "", and whether that is a rank that failed.
func (m *Member) Lost() (why string, failed bool) { return m.lost, m.failed }
