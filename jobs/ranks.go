package jobs

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"zorilla/internal/units"
	"zorilla/jobs/groups"
	"zorilla/jobs/internal/where"
	"zorilla/jobs/placement"
	"zorilla/vicinity"
)

// A job with replicas runs every rank several times, on different nodes. Its
// workers are numbered as in the paper (see package placement): worker
// replica*N + rank of a job of N ranks. This number is the Rank of everything
// that goes between nodes, and of events; users see rank and replica.
//
// Each replica is a job for itself to its programs: the size, the host file and
// the address of rank 0 are those of the same replica.

// MaxReplicas bounds Spec.Replicas.
const MaxReplicas = 100

// Copies returns how often each rank runs.
func (s *Spec) Copies() int { return max(1, s.Replicas) }

// Workers returns how many workers the job has at most: each copy of a rank is
// one.
func (s *Spec) Workers() int { return s.Max * s.Copies() }

// Least returns how many workers the job starts with.
func (s *Spec) Least() int { return s.Min * s.Copies() }

// RankOf reports which copy of which rank a worker is.
func (s *Spec) RankOf(worker int) (rank, replica int) {
	if s.Replicas <= 1 {
		return worker, 0
	}
	return worker % s.Max, worker / s.Max
}

// Who names a worker for people.
func (s *Spec) Who(worker int) string {
	rank, replica := s.RankOf(worker)
	if s.Replicas <= 1 {
		return fmt.Sprintf("rank %d", rank)
	}
	return fmt.Sprintf("rank %d, replica %d", rank, replica)
}

// List names workers of one node.
func (s *Spec) List(ras []RankAttempt) string {
	if len(ras) == 1 {
		return s.Who(ras[0].Rank)
	}
	first, replica := s.RankOf(ras[0].Rank)
	last, other := s.RankOf(ras[len(ras)-1].Rank)
	switch {
	case replica != other:
		return fmt.Sprintf("copies of %d ranks", len(ras))
	case s.Replicas > 1:
		return fmt.Sprintf("ranks %d..%d (%d), replica %d", first, last, len(ras), replica)
	}
	return fmt.Sprintf("ranks %d..%d (%d)", first, last, len(ras))
}

// WorkerOf returns the number of a copy of a rank: RankOf's opposite.
func (s *Spec) WorkerOf(rank, replica int) int { return replica*s.Max + rank }

// A job with groups has ranks that differ: those of a group are consecutive, in the order of the
// groups. How many each group has is chosen with the nodes; from then on Min and Max of the job, and
// of each group, are that number, see Sized.

// Needs is what one worker takes of its node while it lives. It travels as part of an advertisement.
type Needs struct {
	Slots  int   `json:"c"`
	Memory int64 `json:"m,omitempty"` // bytes; 0 = not said
	Disk   int64 `json:"d,omitempty"` // bytes, as memory
	GPUs   int   `json:"g,omitempty"`
}

// Valid reports whether a node may have as much.
func (n Needs) Valid() bool {
	return n.Slots >= 1 && n.Slots <= MaxSlots && n.Memory >= 0 && n.Disk >= 0 && n.GPUs >= 0 && n.GPUs <= MaxGPUs
}

// Of returns the job as a rank sees it: with the command, environment and needs of its group. It
// is the job itself if that has no groups.
func (s *Spec) Of(rank int) *Spec {
	group, _ := s.GroupOf(rank)
	if group < 0 {
		return s
	}
	return s.ofGroup(group)
}

func (s *Spec) ofGroup(group int) *Spec {
	g, own := &s.Groups[group], *s
	if len(g.Args) > 0 {
		own.Args = g.Args
	}
	if len(g.Env) > 0 {
		own.Env = maps.Clone(s.Env)
		if own.Env == nil {
			own.Env = map[string]string{}
		}
		maps.Copy(own.Env, g.Env)
	}
	needs := s.NeedsOf(group)
	own.Slots, own.Memory, own.Disk, own.GPUs = needs.Slots, needs.Memory, needs.Disk, needs.GPUs
	return &own
}

// Needs is what a worker of the job needs that runs a rank.
func (s *Spec) Needs(rank int) Needs {
	group, _ := s.GroupOf(rank)
	return s.NeedsOf(group)
}

// NeedsOf is what a worker of a group needs, or with -1 of a job without groups.
func (s *Spec) NeedsOf(group int) Needs {
	needs := Needs{s.Slots, s.Memory, s.Disk, s.GPUs}
	if group < 0 {
		return needs
	}
	g := &s.Groups[group]
	return Needs{cmp.Or(int(g.Slots.Min), needs.Slots), cmp.Or(g.Memory.Min, needs.Memory), cmp.Or(g.Disk.Min, needs.Disk), cmp.Or(int(g.GPUs.Min), needs.GPUs)}
}

// Kind is what workers want of their node: groups that want the same are of one kind.
type Kind struct {
	Needs
	Where string `json:"x,omitempty"` // "" = no condition besides that of the job
}

// MaxKinds is how many kinds the groups of a job may be of, so that a call for workers fits into a packet.
const MaxKinds = 8

// Kinds lists the kinds of a job's groups, and that of each group; none of a job without groups.
func (s *Spec) Kinds() (list []Kind, of []int) {
	for i := range s.Groups {
		k := Kind{s.NeedsOf(i), s.Groups[i].Condition()}
		n := slices.Index(list, k)
		if n < 0 {
			n, list = len(list), append(list, k)
		}
		of = append(of, n)
	}
	return list, of
}

// Suits reports whether a member can ever have a worker of a group, or with -1 of a job without groups: it
// fulfils the conditions, and is large enough. How much of its disk is free is not known of members, and
// counts as what would do.
func (s *Spec) Suits(group int, m vicinity.Member) bool {
	texts, needs, disks := []string{s.Condition()}, s.NeedsOf(group), []int64{s.Disk}
	if group >= 0 {
		g := &s.Groups[group]
		texts, disks = append(texts, g.Condition()), append(disks, g.Disk.Min, g.Disk.Max)
	}
	if m.Slots < needs.Slots || m.Memory < needs.Memory || m.GPUs < needs.GPUs {
		return false
	}
	for power := range 62 {
		disks = append(disks, 1<<power)
	}
	var conditions []where.Expr
	for _, text := range texts {
		if text != "" {
			w, _ := where.Compile(text) // what cannot be compiled never holds
			conditions = append(conditions, w)
		}
	}
	about := where.PropertiesOf(m)
	return slices.ContainsFunc(disks, func(disk int64) bool {
		about.Disk = int(disk)
		return !slices.ContainsFunc(conditions, func(w where.Expr) bool { return !w.Holds(about) })
	})
}

// Sized returns the job with so many workers in each of its groups.
func (s *Spec) Sized(sizes []int) Spec {
	c := *s
	c.Topology = s.Topology.Sized(sizes)
	c.Min, c.Max = c.Topology.Least(), c.Topology.Most()
	return c
}

// FixedSize reports whether as many workers as the job begins with are all that it has: all or nothing.
func (s *Spec) FixedSize() bool { return s.Array == nil && (s.Min == s.Max || len(s.Groups) > 0) }

// Restarts returns what runs again when a rank is lost: groups.RestartRank, RestartGroup or RestartJob.
func (s *Spec) Restarts(rank int) string {
	if group, _ := s.GroupOf(rank); group >= 0 {
		return cmp.Or(s.Groups[group].Restart, groups.RestartJob)
	}
	if s.FixedSize() && !s.Mapped() {
		return groups.RestartJob
	}
	return groups.RestartRank
}

// RestartsOf returns what runs again when several ranks are lost: the most of what their groups say.
func (s *Spec) RestartsOf(ranks []RankAttempt) string {
	what := groups.RestartRank
	for _, ra := range ranks {
		switch s.Restarts(ra.Rank) {
		case groups.RestartJob:
			return groups.RestartJob
		case groups.RestartGroup:
			what = groups.RestartGroup
		}
	}
	return what
}

// Replaces reports whether a rank that is lost gets another node while others go on.
func (s *Spec) Replaces() bool {
	return !s.FixedSize() || s.Mapped() || slices.ContainsFunc(s.Groups, func(g groups.Group) bool { return g.Restart == groups.RestartRank })
}

// Movable reports whether a rank can go on at another node by itself, as one that is lost would.
func (s *Spec) Movable(rank int) bool {
	return s.Array == nil && s.Restarts(rank) == groups.RestartRank
}

// Rigid reports whether the job is all or nothing (design: a gang), and starts again as a whole.
func (s *Spec) Rigid() bool {
	return s.FixedSize() && !s.Mapped() && !slices.ContainsFunc(s.Groups, func(g groups.Group) bool {
		return g.Restart == groups.RestartRank || g.Restart == groups.RestartGroup
	})
}

// Mapped reports whether the ranks are placed by a task graph. Then each has a node of its own, and is replaced
// by itself when it is lost.
func (s *Spec) Mapped() bool { return placement.Strategy(s.Strategy) == placement.Maheve }

// TaskName is what people call the task of a rank, "" if it has no name.
func (s *Spec) TaskName(rank int) string {
	if s.Graph == nil || rank < 0 || rank >= len(s.Graph.Names) {
		return ""
	}
	return s.Graph.Names[rank]
}

// Clustered reports whether the clusters that nodes are in count for where the ranks are.
func (s *Spec) Clustered() bool { return s.Mapped() || len(s.Groups) > 0 }

// Single reports whether no two workers of the job may be at one node.
func (s *Spec) Single() bool { return s.OnePerNode || s.Mapped() }

// checkGraph returns what is wrong with the task graph, as a user sees it.
func (s *Spec) checkGraph() string {
	switch {
	case s.Graph == nil && !s.Mapped():
		return ""
	case s.Graph == nil:
		return "--strategy maheve places ranks by what they tell each other: want --graph"
	case !s.Mapped():
		return "--graph: only --strategy maheve looks at it"
	case s.Array != nil, s.Replicas > 1, len(s.Groups) > 0, s.MPI, s.MaxRTT > 0:
		return "--strategy maheve goes with no array, groups, --replicas, --mpi or --max-rtt"
	case s.Search.Mode == SearchPaper:
		return "--strategy maheve: want --search adaptive"
	}
	m, err := s.Graph.Graph()
	if err != nil {
		return "--graph: " + err.Error()
	}
	if s.Min != len(m.Cost) || s.Max != len(m.Cost) {
		return fmt.Sprintf("-n %d..%d: the graph has %d tasks, each of which is a rank: want -n %d", s.Min, s.Max, len(m.Cost), len(m.Cost))
	}
	return ""
}

// checkGroups returns what is wrong with the groups, as a user sees it.
func (s *Spec) checkGroups() string {
	if text := s.Topology.Check(); text != "" || len(s.Groups) == 0 {
		return text
	}
	switch {
	case s.Array != nil:
		return "groups: the tasks of an array do not know of each other"
	case s.Replicas > 1:
		return "groups: with --replicas there are none"
	case s.ShareWork:
		return "groups: with --share-work there are none"
	case s.Search.Mode == SearchPaper:
		return "groups: want --search adaptive"
	case s.Strategy != "" || s.MaxRTT != 0:
		return "groups: links say where they are: want no --strategy and no --max-rtt"
	case s.Min != s.Topology.Least() || s.Max != s.Topology.Most():
		return fmt.Sprintf("-n %d..%d: the groups have %d..%d", s.Min, s.Max, s.Topology.Least(), s.Topology.Most())
	}
	length := len(s.Condition())
	kinds, _ := s.Kinds()
	for _, k := range kinds {
		length += len(k.Where)
	}
	if len(kinds) > MaxKinds {
		return fmt.Sprintf("groups: %d kinds of needs and conditions, at most %d", len(kinds), MaxKinds)
	}
	if length+SizeOfMounts(s.Mounts) > MaxConditions {
		return fmt.Sprintf("groups: their conditions take %d bytes, at most %d", length, MaxConditions)
	}
	for i := range s.Groups {
		if text := s.checkGroup(i); text != "" {
			return fmt.Sprintf("group %s: %s", s.Groups[i].Name, text)
		}
	}
	return ""
}

// MaxConditions bounds all conditions of a job on its nodes together, in bytes.
const MaxConditions = 400

// Command is what the job is known by among others: its command and arguments, or those of its first group.
func (s *Spec) Command() []string {
	if len(s.Args) == 0 && len(s.Groups) > 0 {
		return s.Groups[0].Args
	}
	return s.Args
}

// commandless reports whether a rank would have no command.
func (s *Spec) commandless() bool {
	own := len(s.Args) > 0 && s.Args[0] != ""
	if len(s.Groups) == 0 || len(s.Args) > 0 {
		return !own
	}
	return slices.ContainsFunc(s.Groups, func(g groups.Group) bool { return len(g.Args) == 0 || g.Args[0] == "" })
}

func (s *Spec) checkGroup(i int) string {
	g, own := &s.Groups[i], s.ofGroup(i)
	for _, condition := range []string{g.Where, g.Condition()} { // by itself first: it must not end brackets that it is in
		if condition == "" {
			continue
		}
		if _, err := where.Compile(condition); err != nil {
			return fmt.Sprintf("where: %v", err)
		}
	}
	if s.MPI && cmp.Or(g.Restart, groups.RestartJob) != groups.RestartJob {
		return "restart: the ranks of an MPI program start together, want " + groups.RestartJob
	}
	switch {
	case len(own.Args) == 0 || own.Args[0] == "":
		return "no command"
	case own.Slots < 1 || own.Slots > MaxSlots:
		return fmt.Sprintf("slots %d: want 1 to %d", own.Slots, MaxSlots)
	case own.GPUs > MaxGPUs:
		return fmt.Sprintf("gpus %d: want 0 to %d", own.GPUs, MaxGPUs)
	case len(own.Args) > MaxArgs:
		return fmt.Sprintf("%d arguments, at most %d", len(own.Args), MaxArgs)
	case g.Slots.Max > 0 && int64(own.Slots) > g.Slots.Max:
		return fmt.Sprintf("slots: a worker takes %d, and its node may have %d at most", own.Slots, g.Slots.Max)
	case g.Memory.Max > 0 && own.Memory > g.Memory.Max:
		return fmt.Sprintf("mem: a worker takes %s, and its node may have %s at most", units.Bytes(own.Memory), units.Bytes(g.Memory.Max))
	case g.Disk.Max > 0 && own.Disk > g.Disk.Max:
		return fmt.Sprintf("disk: a worker takes %s, and its node may have %s at most", units.Bytes(own.Disk), units.Bytes(g.Disk.Max))
	case g.GPUs.Max > 0 && int64(own.GPUs) > g.GPUs.Max:
		return fmt.Sprintf("gpus: a worker takes %d, and its node may have %d at most", own.GPUs, g.GPUs.Max)
	}
	own.Topology = groups.Topology{}
	if err := own.checkTexts(); err != nil {
		return err.Error()
	}
	return ""
}
