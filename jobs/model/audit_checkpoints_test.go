package model

import (
	"fmt"
	"slices"

	"zorilla/jobs"
	"zorilla/jobs/groups"
	"zorilla/jobs/internal/record"
	"zorilla/transfer"
	"zorilla/vicinity"
)

// What programs were told to be safe is there when they start again: each rank begins with its newest checkpoint,
// those that start together with checkpoints of one epoch and of one history, and no node lets go of what is needed.

// checkpointing is what the audit knows of all checkpoints.
type checkpointing struct {
	made map[transfer.Hash]*state
	kept map[vicinity.ID]map[keptName]bool
	logs map[vicinity.ID]int // how much of those of nodes is read
	torn map[vicinity.ID]int
	// Orphan reports whether a job has no origin any more. Nil = none has.
	orphan func(jobs.ID) bool
}

func newCheckpointing() checkpointing {
	return checkpointing{made: map[transfer.Hash]*state{}, kept: map[vicinity.ID]map[keptName]bool{}, logs: map[vicinity.ID]int{}, torn: map[vicinity.ID]int{}}
}

// SetOrphan has the audit know which jobs have lost their origin for good.
func (a *Audit) SetOrphan(f func(jobs.ID) bool) { a.orphan = f }

// Keeps counts the checkpoints that a node keeps.
func (m *Model) Keeps() int { return len(m.disk.kept) }

// state is a checkpoint that a program has made.
type state struct {
	jobs.RankAttempt
	epoch   int64
	history int    // how often its rank was started again with others before
	place   [2]int // group, and number within that
	missed  bool   // no node gave it to who was to begin with it
}

// recalled is what is known of the checkpoints of a job.
type recalled struct {
	ranks     map[int]*rankSaved
	histories map[jobs.RankAttempt]int // of attempts that were started
	restarts  map[[2]int]*jobs.Checkpoint
	lacks     map[jobs.RankAttempt]bool // what it was to begin with
	chosen    int                       // the history with which ranks began when sizes were chosen anew
}

// rankSaved is what is known of those of a rank.
type rankSaved struct {
	list     []jobs.Checkpoint // what the journal has
	numbers  map[int]transfer.Hash
	told     map[int64]*jobs.Checkpoint // by epoch, of a rank that starts alone by number
	missedTo int                        // the largest number of those that were lost, or are of sizes that were chosen anew
	history  int
}

func (s *story) savedOf(rank int) *rankSaved {
	if s.recalled.ranks == nil {
		s.recalled = recalled{map[int]*rankSaved{}, map[jobs.RankAttempt]int{}, map[[2]int]*jobs.Checkpoint{}, map[jobs.RankAttempt]bool{}, 0}
	}
	k := s.recalled.ranks[rank]
	if k == nil {
		k = &rankSaved{numbers: map[int]transfer.Hash{}, told: map[int64]*jobs.Checkpoint{}, history: s.recalled.chosen}
		s.recalled.ranks[rank] = k
	}
	return k
}

// with lists the ranks that start again with one.
func (s *story) with(rank int) (list []int, set int) {
	what := s.spec.Restarts(rank)
	group, _ := s.spec.GroupOf(rank)
	for i := range s.spec.Workers() {
		g, _ := s.spec.GroupOf(i)
		if i == rank || s.spec.Restarts(i) == what && (what == groups.RestartJob || what == groups.RestartGroup && g == group) {
			list = append(list, i)
		}
	}
	switch what {
	case groups.RestartJob:
		return list, -1
	case groups.RestartGroup:
		return list, group
	}
	return list, 1000 + rank
}

// newestOf returns the newest epoch that all ranks of a list have in common; 0 = none.
func newestOf(ranks []int, has func(rank int, epoch int64) bool, epochs []int64) (newest int64) {
	for _, e := range epochs {
		if e > newest && !slices.ContainsFunc(ranks, func(rank int) bool { return !has(rank, e) }) {
			newest = e
		}
	}
	return newest
}

// durable is the newest epoch that the journal has of all of them.
func (s *story) durable(ranks []int) int64 {
	var epochs []int64
	for _, c := range s.savedOf(ranks[0]).list {
		epochs = append(epochs, c.Epoch)
	}
	return newestOf(ranks, func(rank int, epoch int64) bool {
		return slices.ContainsFunc(s.savedOf(rank).list, func(c jobs.Checkpoint) bool { return c.Epoch == epoch })
	}, epochs)
}

// promised is the newest epoch that all of their programs were told.
func (s *story) promised(a *Audit, ranks []int) int64 {
	var epochs []int64
	for e := range s.savedOf(ranks[0]).told {
		epochs = append(epochs, e)
	}
	return newestOf(ranks, func(rank int, epoch int64) bool {
		c := s.savedOf(rank).told[epoch]
		return c != nil && !a.made[c.Manifest].missed
	}, epochs)
}

func numbersOf(list []jobs.Checkpoint) string {
	text := "["
	for _, c := range list {
		text += fmt.Sprintf(" %d:%d", c.Number, c.Epoch)
	}
	return text + " ]"
}

// readSaved takes what the journal has of a rank's checkpoints from now on.
func (s *story) readSaved(a *Audit, job jobs.ID, ev *record.Event) string {
	rank := ev.Ranks[0].Rank
	k := s.savedOf(rank)
	ranks, _ := s.with(rank)
	before, common := k.list, s.durable(ranks)
	a.Note(job.Origin(), job, "has checkpoints %s of rank %d", numbersOf(ev.Checkpoints), rank)
	k.list = ev.Checkpoints
	for i := range k.list {
		if text := s.readCheckpoint(a, job, rank, &k.list[i], before); text != "" {
			return text
		}
	}
	for _, c := range before {
		if gone := !slices.ContainsFunc(k.list, func(d jobs.Checkpoint) bool { return d.Number == c.Number }); gone && a.made[c.Manifest].missed {
			k.missedTo = max(k.missedTo, c.Number)
		}
	}
	if len(ranks) == 1 {
		return s.readAlone(k)
	}
	now := s.durable(ranks)
	if now < common && !s.resizes() && !slices.ContainsFunc(before, func(c jobs.Checkpoint) bool { return c.Epoch == common && a.made[c.Manifest].missed }) {
		return fmt.Sprintf("all had epoch %d, and it is gone: %s was %s", common, numbersOf(k.list), numbersOf(before))
	}
	for _, member := range ranks {
		told := s.savedOf(member).told
		for e := range told {
			if e < now {
				delete(told, e) // a newer one is there
			}
		}
	}
	for e, c := range k.told {
		crowded := len(k.list) == jobs.MaxCheckpoints && e > now
		if crowded && !slices.ContainsFunc(k.list, func(d jobs.Checkpoint) bool { return d.Number == c.Number }) {
			delete(k.told, e)
		}
	}
	return ""
}

// readAlone: of a rank that starts alone the newest one that its program was told is there, or a later one.
func (s *story) readAlone(k *rankSaved) string {
	for number := range k.told {
		in := slices.ContainsFunc(k.list, func(c jobs.Checkpoint) bool { return c.Number == int(number) })
		newer := len(k.list) > 0 && k.list[len(k.list)-1].Number > int(number)
		switch {
		case !in && int(number) <= k.missedTo:
			delete(k.told, number)
		case !in && !newer && !s.resizes():
			return fmt.Sprintf("its program was told that %d is safe, and there is %s", number, numbersOf(k.list))
		}
	}
	return ""
}

// readCheckpoint: one that is new was made by the attempt that counts, has a number of its own, and nodes have it.
func (s *story) readCheckpoint(a *Audit, job jobs.ID, rank int, c *jobs.Checkpoint, before []jobs.Checkpoint) string {
	k, made := s.savedOf(rank), a.made[c.Manifest]
	if h, ok := k.numbers[c.Number]; ok && h != c.Manifest {
		return fmt.Sprintf("there was another checkpoint %d", c.Number)
	}
	k.numbers[c.Number] = c.Manifest
	if slices.ContainsFunc(before, func(d jobs.Checkpoint) bool { return d.Number == c.Number }) {
		return ""
	}
	if made == nil || made.Rank != rank || made.Attempt != s.ranks[rank].attempt || made.epoch != c.Epoch {
		return fmt.Sprintf("nobody has made checkpoint %d: %+v", c.Number, made)
	}
	for _, id := range c.Holders {
		if !a.kept[id][nameOf(job, rank, c)] {
			return fmt.Sprintf("node %s does not have checkpoint %d", id.Short(), c.Number)
		}
	}
	return ""
}

// resizes reports whether the sizes of groups may change when all of the job starts again.
func (s *story) resizes() bool {
	return s.wish != nil && slices.ContainsFunc(s.wish.Groups, func(g groups.Group) bool { return g.Min < g.Max })
}

// readRestart: what starts again together does so from the newest epoch that all were told, or a newer one.
func (s *story) readRestart(a *Audit, ev *record.Event) string {
	for _, ra := range ev.Ranks {
		if ev.Kind == record.Started {
			s.savedOf(ra.Rank)
			s.recalled.histories[ra] = s.savedOf(ra.Rank).history
		}
	}
	if ev.Kind != record.Retried && ev.Kind != record.Declined {
		return ""
	}
	whole := len(ev.Ranks) == s.spec.Workers() && !s.alone(ev, ev.Ranks[0])
	if whole && s.resizes() {
		s.chooseAnew()
	}
	for _, ra := range ev.Ranks {
		k := s.savedOf(ra.Rank)
		ranks, _ := s.with(ra.Rank)
		if whole && s.resizes() {
			clear(k.told)
			for number := range k.numbers { // its program may hear of them yet
				k.missedTo = max(k.missedTo, number)
			}
			continue
		}
		if len(ranks) == 1 {
			continue
		}
		k.history++
		common := s.durable(ranks)
		if want := s.promised(a, ranks); want > common {
			return fmt.Sprintf("ranks %v were told that epoch %d is safe, and have %d", ranks, want, common)
		}
		for _, c := range k.list {
			if c.Epoch > common {
				return fmt.Sprintf("rank %d keeps epoch %d of a history that ends at %d", ra.Rank, c.Epoch, common)
			}
		}
		for e := range k.told {
			if e > common {
				delete(k.told, e)
			}
		}
	}
	return ""
}

// chooseAnew begins a history that all ranks share, as they may be in other groups from now on.
func (s *story) chooseAnew() {
	for _, k := range s.recalled.ranks {
		s.recalled.chosen = max(s.recalled.chosen, k.history+1)
	}
	for _, k := range s.recalled.ranks {
		k.history = s.recalled.chosen
	}
}

// tore forgets what was promised, and was to be replaced, when the origin died amid a write.
func (s *story) tore() {
	for _, k := range s.recalled.ranks {
		for e, c := range k.told {
			if !slices.ContainsFunc(k.list, func(d jobs.Checkpoint) bool { return d.Number >= c.Number }) {
				delete(k.told, e)
			}
		}
	}
}

// followSaved reads what has happened to checkpoints at a node since.
func (a *Audit) followSaved(node vicinity.ID, d *disk) {
	for _, id := range d.torn[a.torn[node]:] {
		if s := a.jobs[id]; s != nil {
			s.tore()
		}
	}
	a.torn[node] = len(d.torn)
	if a.kept[node] == nil {
		a.kept[node] = map[keptName]bool{}
	}
	for i := range d.log[a.logs[node]:] {
		e := &d.log[a.logs[node]+i]
		id := e.WorkerID.Job
		if id == "" {
			id = e.job
		}
		if e.what != savedBegan || e.c != nil {
			a.Note(node, id, "%s", e.describe())
		}
		if text := a.savedAt(node, e); text != "" {
			a.Fail(id, "job %s: %s: %s", id, e.describe(), text)
		}
	}
	a.logs[node] = len(d.log)
}

func (e *saved) describe() string {
	what := [...]string{"made", "was told", "begins with", "does not get", "keeps", "drops", "lets expire"}[e.what]
	switch {
	case e.what >= savedKept:
		return fmt.Sprintf("%s checkpoint %d of rank %d, %x", what, e.number, e.rank, e.manifest[:2])
	case e.c == nil:
		return fmt.Sprintf("%d.%d begins anew", e.WorkerID.Rank, e.Attempt)
	}
	return fmt.Sprintf("%d.%d %s checkpoint %d, epoch %d, %x", e.WorkerID.Rank, e.Attempt, what, e.c.Number, e.c.Epoch, e.c.Manifest[:2])
}

// savedAt takes what has happened to a checkpoint at a node, and says what is wrong with it.
func (a *Audit) savedAt(node vicinity.ID, e *saved) string {
	switch e.what {
	case savedKept:
		a.kept[node][e.keptName] = true
		return ""
	case savedDropped, savedExpired:
		delete(a.kept[node], e.keptName)
		s := a.jobs[e.job]
		if s == nil || s.final != "" || e.what == savedExpired && a.orphan != nil && a.orphan(e.job) {
			return ""
		}
		list := s.savedOf(e.rank).list
		if slices.ContainsFunc(list, func(c jobs.Checkpoint) bool { return c.Manifest == e.manifest && slices.Contains(c.Holders, node) }) {
			return "its job needs it: " + numbersOf(list)
		}
		return ""
	}
	s := a.jobs[e.WorkerID.Job]
	k := s.savedOf(e.WorkerID.Rank)
	switch e.what {
	case savedMade:
		group, place := s.spec.GroupOf(e.rank)
		a.made[e.manifest] = &state{RankAttempt: e.RankAttempt, epoch: e.c.Epoch, history: s.recalled.histories[e.RankAttempt], place: [2]int{group, place}}
	case savedMissing:
		a.made[e.manifest].missed, s.lacks[e.RankAttempt] = true, true
	case savedTold:
		s.told(k, e)
	case savedBegan:
		return s.began(a, k, e)
	}
	return ""
}

// told takes what a program was told to be safe. It may hear that too late to matter.
func (s *story) told(k *rankSaved, e *saved) {
	ranks, _ := s.with(e.rank)
	switch {
	case len(ranks) == 1 && (e.number > k.missedTo || slices.ContainsFunc(k.list, func(c jobs.Checkpoint) bool { return c.Number == e.number })):
		k.told[int64(e.number)] = e.c
	case len(ranks) > 1 && s.recalled.histories[e.RankAttempt] == k.history && e.c.Epoch >= s.durable(ranks):
		k.told[e.c.Epoch] = e.c
	}
}

// began: an attempt that counts begins with what it should.
func (s *story) began(a *Audit, k *rankSaved, e *saved) string {
	ra := e.RankAttempt
	if s.final != "" || s.ranks[ra.Rank].attempt != ra.Attempt {
		return ""
	}
	ranks, set := s.with(ra.Rank)
	number, epoch := 0, int64(0)
	if e.c != nil {
		made := a.made[e.c.Manifest]
		group, place := s.spec.GroupOf(ra.Rank)
		if made == nil || made.Rank != ra.Rank || made.place != [2]int{group, place} || made.Attempt >= ra.Attempt {
			return fmt.Sprintf("it is not a state of the rank: %+v", made)
		}
		number, epoch = e.c.Number, e.c.Epoch
	}
	if len(ranks) == 1 {
		for n := range k.told {
			if int(n) > number {
				return fmt.Sprintf("its program was told that %d is safe", n)
			}
		}
		return ""
	}
	if want := s.promised(a, ranks); want > epoch {
		return fmt.Sprintf("the programs of %v were told that epoch %d is safe", ranks, want)
	}
	key := [2]int{set, k.history}
	first, ok := s.recalled.restarts[key]
	if !ok {
		s.recalled.restarts[key] = e.c
		return ""
	}
	switch {
	case (first == nil) != (e.c == nil), first != nil && first.Epoch != epoch:
		return "another rank of these has begun with another epoch"
	case first != nil && a.made[first.Manifest].history != a.made[e.c.Manifest].history:
		return "another rank of these has begun with a checkpoint of another history"
	}
	return ""
}
