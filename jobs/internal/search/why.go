package search

import (
	"fmt"
	"time"

	"zorilla/internal/codec"
	"zorilla/internal/units"
	"zorilla/jobs"
	"zorilla/jobs/internal/wire"
	"zorilla/vicinity"
)

// able sums up what the nodes that have answered could ever do for the job.
type able struct {
	nodes   int // could run one of its workers at least
	passing int // cannot now, for a reason that may pass without anybody's doing
	most    most
	stale   bool // one of those that most is of may be gone
}

// feasibility is whether the nodes that have answered could do what a job with groups wants if they were idle.
type feasibility struct {
	told       int    // counts changes of what nodes have said of that
	judged     int    // that, and how often distances were learnt, when the rest was found out
	judgedFor  Groups // what was wanted then
	infeasible string // why they could not; "" = they could, or it is not known
	tooFew     string // why they could not wherever they were
}

// most is how much the largest nodes have.
type most struct {
	slots, gpus int
	memory      int64
}

func (m most) with(o most) most {
	return most{max(m.slots, o.slots), max(m.gpus, o.gpus), max(m.memory, o.memory)}
}

// capacityOf is what a node that answers so could do.
func capacityOf(from vicinity.Member, a *wire.Answer) capacity {
	return capacity{
		workers: a.Capacity, most: most{from.Slots, from.GPUs, from.Memory},
		passing: a.Capacity == 0 && !wire.Lasts(a.Reason), fits: a.Fits,
	}
}

// counted adds a node to what is summed up, or takes it away (by = -1).
func (s *nodeAnswers) counted(c capacity, by int) {
	s.roomFor += by * c.workers
	if c.workers > 0 {
		s.able.nodes += by
	}
	if c.passing {
		s.able.passing += by
	}
	if by > 0 {
		s.able.most = s.able.most.with(c.most)
	}
}

// never reports why no member can run the job, as all of them and their owners are now, or
// is "". To be busy, or about to leave, is no such reason.
func (s *Search) never(d *Demand) string {
	spec := s.spec
	if d.Wanted == 0 || s.able.passing > 0 || len(spec.Groups) == 0 && s.roomFor >= d.Least && s.able.nodes >= spec.Replicas {
		return ""
	}
	members, has := s.Members(), s.largest()
	if len(s.room) < members { // not all of them have answered
		return ""
	}
	if s.judge(d); len(spec.Groups) > 0 {
		return s.tooFew
	}
	switch {
	case spec.Memory > has.memory:
		return fmt.Sprintf("no member has %s of memory, the largest has %s", units.Bytes(spec.Memory), units.Bytes(has.memory))
	case spec.Slots > has.slots:
		return fmt.Sprintf("no member has %s, the largest has %d", units.Count(spec.Slots, "slot", "slots"), has.slots)
	case spec.GPUs > 0 && has.gpus == 0:
		return "no member has a GPU"
	case spec.GPUs > has.gpus:
		return fmt.Sprintf("no member has %s, the largest has %d", units.Count(spec.GPUs, "GPU", "GPUs"), has.gpus)
	case s.able.nodes == 0:
		return "no member can run it"
	case spec.Single() && d.Least > s.able.nodes:
		return fmt.Sprintf("%s at nodes of their own need as many, %d can run it", units.Count(d.Least, "worker", "workers"), s.able.nodes)
	case spec.Replicas > s.able.nodes && s.able.nodes == members:
		return fmt.Sprintf("%d copies of a rank need %d nodes, %d are there", spec.Replicas, spec.Replicas, members)
	case spec.Replicas > s.able.nodes:
		return fmt.Sprintf("%d copies of a rank need %d nodes, %d of %d can run it", spec.Replicas, spec.Replicas, s.able.nodes, members)
	}
	return fmt.Sprintf("together they have room for %d, and there are no other members", s.roomFor)
}

// forgetNode counts on a node no more.
func (s *nodeAnswers) forgetNode(id vicinity.ID) {
	if c, ok := s.room[id]; ok {
		s.counted(c, -1)
		delete(s.room, id)
		s.told++
		s.able.stale = true
	}
}

// largest is how much the largest nodes have that are still there.
func (s *nodeAnswers) largest() most {
	if s.able.stale {
		s.able.stale, s.able.most = false, most{}
		for _, c := range s.room {
			s.able.most = s.able.most.with(c.most)
		}
	}
	return s.able.most
}

// Never reports whether no member can run the job, as all of them are now.
func (w *Why) Never() bool { return w.never != "" }

// reasonSilent is that of nodes which were asked.
const reasonSilent = "has not answered"

// passed notes how long slots were held for others at the least, where they are not waited for
// any longer.
func passed(now time.Time, s *nodeAnswers) {
	for id, h := range s.hopes {
		if held, known := units.Millis(now.Sub(h.since)); known && s.Answers[id].Fate == heldForOther {
			s.fate(id, heldForOther+", for at least "+held+" ms")
		}
	}
}

// heardBy is the flood by which each member of a small network has answered that gets messages.
const heardBy = 3

// unheard counts the members that have never answered, once they should have: where there are so
// few that each is asked.
func (s *Search) unheard() int {
	if s.number() <= heardBy {
		return 0
	}
	members := s.Members()
	if members > maxDirect {
		return 0
	}
	return max(members-len(s.room), 0)
}

// Silent lists the nodes that have never answered, though this node has asked them itself,
// if their distance is known.
func (s *Search) Silent() (list []jobs.NodeAnswer) {
	for _, id := range s.frontier.Unanswered() {
		rtt := s.Measured(id)
		if _, known := s.Answers[id]; !known && rtt > 0 {
			list = append(list, jobs.NodeAnswer{Node: id, RTT: codec.Duration(rtt), Reason: reasonSilent})
		}
	}
	return list
}
