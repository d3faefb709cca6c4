package jobs

import (
	"slices"
	"time"

	"zorilla/vicinity"
)

// A job's table is the nodes that its ranks were started on, which its programs
// find in their host files. Each change of it is an epoch. Participants say in
// their reports which epoch their workers know, and the answers bring a newer
// table until they do: a lost answer costs nothing but time.

const (
	// tableEvery is how soon the next change is told after one was.
	tableEvery = time.Second
	// tableRate bounds what an origin sends of the tables of one job, in bytes
	// a second: a large job, of which every node gets a long table, hears of
	// changes less often.
	tableRate = 4 << 20
	// tableLine is about the size of a host in a table.
	tableLine = 32
)

// tableState is what a primary keeps for its participants.
type tableState struct {
	lastEpoch int64     // up to this epoch participants are told
	toldAt    time.Time // when that began

	hosts []Host // of epoch; in use elsewhere, never changed
	epoch int64
}

// Table tells a participant where the ranks of a job are by now.
type Table struct {
	Epoch int64  `json:"epoch"`
	File  string `json:"file"` // the host file
	hosts []Host
}

// inTable reports whether a rank is in the job's table: it was started, and was
// not lost or taken back since. One that has ended stays, so that the end of a
// job is no change.
func (k *rankRecord) inTable() bool { return k.state == WorkerRunning || k.state == WorkerEnded }

// turn begins an epoch if the event, which is not applied yet, changes the
// table.
func (r *record) turn(ev event) {
	switch ev.Kind {
	case evStarted, evLost, evRetried, evDeclined:
	default:
		return
	}
	for _, ra := range ev.Ranks {
		if r.owns(ra) && r.ranks[ra.Rank].inTable() == (ev.Kind != evStarted) {
			r.epoch++
			return
		}
	}
}

// of returns the table of a job by lowest rank.
func (t *tableState) of(r *record) []Host {
	if t.epoch == r.epoch && t.hosts != nil {
		return t.hosts
	}
	byNode := map[vicinity.ID][]int{}
	for i := range r.ranks {
		if k := &r.ranks[i]; k.inTable() {
			byNode[k.node] = append(byNode[k.node], i)
		}
	}
	hosts := make([]Host, 0, len(byNode))
	for id, ranks := range byNode {
		hosts = append(hosts, Host{Node: id, Ranks: ranks})
	}
	slices.SortFunc(hosts, func(a, b Host) int { return a.Ranks[0] - b.Ranks[0] })
	t.hosts, t.epoch = hosts, r.epoch
	return hosts
}

// startMessage lets ranks start.
func (p *lifecycle) startMessage(ranks []RankAttempt) Start {
	s := Start{Job: p.rec.id, Ranks: ranks, Size: p.rec.spec.Min, Hosts: p.table.of(&p.rec), Epoch: p.rec.epoch, master: p.rec.ranks[0].node}
	if !p.rec.spec.Rigid() {
		s.Size = p.rec.count(WorkerPreparing, WorkerReady, WorkerRunning, WorkerEnded)
	}
	return s
}

// tableFor returns the table for a participant that has reported, if its workers
// know an older one and it is time to tell; else nil. A node that says nothing
// of epochs has no use for it.
func (p *primary) tableFor(now time.Time, from vicinity.ID, rep *Report) *Table {
	if rep.Epoch <= 0 || rep.Epoch >= p.rec.epoch || p.rec.spec.Array != nil || p.rec.replicated() || p.rec.state.Final() || p.rec.closing() {
		return nil
	}
	t := &p.table
	if gone := now.Sub(t.toldAt); t.lastEpoch < p.rec.epoch && (gone >= tablePace(len(t.of(&p.rec))) || gone < 0) {
		t.lastEpoch, t.toldAt = p.rec.epoch, now
	}
	runs := slices.ContainsFunc(rep.Workers, func(w WorkerReport) bool {
		return w.State == WorkerRunning && p.owned(from, w.RankAttempt)
	})
	if rep.Epoch >= t.lastEpoch || !runs {
		return nil
	}
	return &Table{Epoch: p.rec.epoch, hosts: t.of(&p.rec)}
}

// tablePace returns how long a change of a table of so many hosts is kept back
// after one was told.
func tablePace(hosts int) time.Duration {
	n := float64(hosts)
	return max(tableEvery, time.Duration(n*n*tableLine/tableRate*float64(time.Second)))
}
