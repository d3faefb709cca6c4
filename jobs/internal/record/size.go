package record

import (
	"cmp"
	"math"
	"slices"

	"zorilla/jobs"
	"zorilla/jobs/internal/wire"
	"zorilla/vicinity"
)

// How many workers a malleable job has, and which. Whoever asks for fewer gives ranks
// back: they are ended, and how they end is no matter of the job's any more. Their
// numbers are free for others later.

// Shape is which ranks a job has, and is to have.
type Shape struct {
	Epoch int64  // of the table: how often it has changed
	Asked int    // how many workers were asked for last; 0 = nobody has asked: as many as the spec allows
	Kept  []Kept // of numbers that were given back and have a later attempt
}

// Kept is what is left of an attempt that was given back, once its number has another.
type Kept struct {
	jobs.RankAttempt
	Wrote  *wire.Written
	Output *jobs.RankOutput // nil = it made no files
}

// resize notes that another number of workers is wanted, and gives ranks back.
func resize(r *Record, ev Event) {
	r.Asked = ev.Size
	r.each(ev.Ranks, func(k *Rank) {
		if k.State != jobs.WorkerRunning { // it has nothing to end
			*k = k.fresh()
		}
		k.GivenBack, k.Retried, k.Left = true, ev.Reason, ""
	})
}

// keep notes what a number leaves that was given back and is granted again.
func keep(r *Record, rank int) {
	if k := &r.Ranks[rank]; k.GivenBack && k.State == jobs.WorkerEnded {
		r.Kept = append(r.Kept, Kept{jobs.RankAttempt{Rank: rank, Attempt: k.Attempt}, k.Wrote, k.Output})
	}
}

// lose notes that a rank was lost after its start. One that was given back needs no other
// node.
func (k *Rank) lose(why string) {
	if k.GivenBack {
		*k = k.fresh()
		return
	}
	k.State, k.Retried, k.Former = jobs.WorkerLost, why, k.Node
}

// move ends an attempt whose rank is to go on at another node. One that waits for that may go back.
func (k *Rank) move(to vicinity.ID, why string) {
	left := cmp.Or(k.Node, k.Left)
	*k = k.fresh()
	if k.Retried, k.Former, k.Left = why, cmp.Or(to, left), left; to == left {
		k.Left = ""
	}
}

// again reports whether a rank that was granted before needs another node.
func (k *Rank) again() bool {
	return k.State == jobs.WorkerWanted && k.Attempt > 0 && !k.GivenBack
}

// free reports whether a number has no worker, and needs none.
func (k *Rank) free() bool {
	if k.GivenBack && k.State == jobs.WorkerEnded {
		return k.Collected
	}
	return k.State == jobs.WorkerWanted && !k.again()
}

// Serves reports whether a rank is one of the job's workers: it has a node or needs one,
// has not ended, and was not given back.
func (k *Rank) Serves() bool {
	return !k.GivenBack && k.State != jobs.WorkerEnded && k.State != jobs.WorkerStopped && !k.free()
}

// RankList is the ranks of a job.
type RankList []Rank

// Serving returns how many workers the job has.
func (l RankList) Serving() (n int) {
	for i := range l {
		if l[i].Serves() {
			n++
		}
	}
	return n
}

// Kept counts those in one of the states that were not given back.
func (l RankList) Kept(states ...jobs.WorkerState) (n int) {
	for i := range l {
		if !l[i].GivenBack && slices.Contains(states, l[i].State) {
			n++
		}
	}
	return n
}

// Grows reports whether the job may have more workers than it has: nobody new is looked
// for once a first rank has ended.
func (r *Record) Grows() bool {
	return r.Tasks != nil || r.Ranks.Kept(jobs.WorkerEnded) == 0
}

// growth returns how many new workers are welcome.
func growth(r *Record) int {
	switch {
	case !r.Grows():
		return 0
	case r.Asked == 0:
		return math.MaxInt
	}
	return max(0, r.Asked-r.Ranks.Serving())
}

// Placed is what is known of where ranks are.
type Placed struct {
	Worst    *jobs.WorstPair `json:"worst,omitempty"`    // of Started
	Ports    []int           `json:"ports,omitempty"`    // of Started: of the first Ranks; 0 = none
	Replaced []jobs.Replaced `json:"replaced,omitempty"` // of Granted: of each of Ranks, zero of one that was not lost; nil = none was
	Resumed  []int           `json:"resumed,omitempty"`  // of Granted: number of the checkpoint that each of Ranks begins with, 0 = none; nil = none does
	Booking  *Booking        `json:"booking,omitempty"`  // of Booked
}

// Sizing is how many workers there are to be.
type Sizing struct {
	Size  int   `json:"size,omitempty"`  // of Resized
	Sizes []int `json:"sizes,omitempty"` // of Granted: ranks of each group
}

// LostAt returns near where each of some ranks is looked for, in their order: where it was lost, or is to go on,
// "" of one that may be anywhere; it ends with the last one that may not.
func (l RankList) LostAt(ranks []int) (nodes []vicinity.ID) {
	for i, rank := range ranks {
		if from := l[rank].Former; from != "" {
			nodes = append(append(nodes, make([]vicinity.ID, i-len(nodes))...), from)
		}
	}
	return nodes
}

// LeftBy returns the nodes that some ranks were moved away from, and those that are named for them instead.
func (l RankList) LeftBy(ranks []int) (left, to []vicinity.ID) {
	for _, rank := range ranks {
		k := &l[rank]
		if k.Left == "" {
			continue
		}
		left = append(left, k.Left)
		if k.Former != k.Left {
			to = append(to, k.Former)
		}
	}
	return left, to
}
