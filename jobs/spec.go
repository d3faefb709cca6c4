package jobs

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"zorilla/flood"
	"zorilla/internal/codec"
	"zorilla/internal/sanitize"
	"zorilla/jobs/groups"
	"zorilla/jobs/internal/where"
	"zorilla/jobs/placement"
	"zorilla/jobs/timing"
	"zorilla/transfer"
)

// ErrInvalid is wrapped by what Spec.Validate returns.
var ErrInvalid = errors.New("invalid job")

// Spec is what a user wants to be run. It never changes after submission.
type Spec struct {
	// Key names the submission: with the same key the same spec is the same job,
	// so that it can be submitted again without harm. "" = none.
	Key string `json:"key,omitempty"`

	Name    string            `json:"name,omitempty"`
	Args    []string          `json:"args"` // command and arguments
	Env     map[string]string `json:"env,omitempty"`
	Inputs  transfer.Hash     `json:"inputs,omitzero"`   // manifest of the files each worker finds in its work directory
	Outputs []string          `json:"outputs,omitempty"` // globs relative to the work directory
	Stdin   bool              `json:"stdin,omitempty"`   // rank 0 reads what the client sends

	Array *Array `json:"array,omitempty"` // run the command once for each task; nil = once for each rank

	Min   int `json:"min"`   // workers to start with
	Max   int `json:"max"`   // workers at most; equal to Min for a rigid job
	Slots int `json:"slots"` // per worker

	Disk     int64          `json:"disk,omitempty"`     // bytes per worker that must be free on its node
	GPUs     int            `json:"gpus,omitempty"`     // per worker
	Where    string         `json:"where,omitempty"`    // expression that a node must fulfil; "" = none
	Memory   int64          `json:"memory,omitempty"`   // bytes per worker; 0 = no limit
	Walltime codec.Duration `json:"walltime,omitempty"` // 0 = no limit
	GiveUp   codec.Duration `json:"give_up,omitempty"`  // end a job that has not started after this; 0 = wait for ever
	Priority int            `json:"priority,omitempty"` // higher goes first; -100..100
	Strategy string         `json:"strategy,omitempty"` // see placement; "" = nearest
	Placing
	Replicas int `json:"replicas,omitempty"` // copies of each rank, on different nodes; 0 = 1

	groups.Topology // of a job whose ranks differ; Min and Max are those of its groups together

	Search Search       `json:"search,omitzero"`
	After  []Dependency `json:"after,omitempty"` // all must be fulfilled before it looks for workers

	Failing

	Notices

	Access
}

// Access is what workers can reach of a node, and what it does for them.
type Access struct {
	// Mounts are paths of the nodes that the workers need, PATH:ro or PATH:rw: only nodes
	// whose owners show them to the job offer.
	Mounts []string `json:"mounts,omitempty"`

	// Net is what the workers can reach: NetNone, NetJob or NetHost; "" = NetHost.
	Net string `json:"net,omitempty"`

	// MPI: the workers are the ranks of an MPI program, which find each other by their
	// nodes (jobs/pmi): when one is lost, all are.
	MPI bool `json:"mpi,omitempty"`

	// ShareWork: the ranks at a node have one work directory together, instead of one each.
	ShareWork bool `json:"share_work,omitempty"`
}

// Pairwise reports whether the round trips between the job's own nodes count.
func (s *Spec) Pairwise() bool {
	if s.Near() {
		return true
	}
	w := placement.Wish{Strategy: placement.Strategy(s.Strategy), MaxRTT: time.Duration(s.MaxRTT)}
	return w.Pairwise()
}

// Ways to search for workers.
const (
	// SearchAdaptive extends one flood, nearest nodes first, as long as it
	// could find somebody nearer than the workers it would take, and waits
	// where nodes that are busy will be free soon.
	SearchAdaptive = "adaptive"
	// SearchPaper floods again with a larger radius after each wait, as Drost
	// et al. do (flood.Search).
	SearchPaper = "paper"
)

// Search says how a job looks for its workers. Zero fields mean the default.
type Search struct {
	Mode   string         `json:"mode,omitempty"`           // SearchAdaptive (the default) or SearchPaper
	Radius int            `json:"radius,omitempty"`         // of the first flood, 1 to flood.MaxRadius; 0 = floor(log10(workers)), at least 1
	Wait   codec.Duration `json:"wait,omitempty"`           // after the first flood, 10 ms to 1 h; 0 = 1 s
	Factor float64        `json:"factor,omitempty"`         // each wait is so much longer than the one before, 1 to 10; 0 = 2
	Begin  time.Time      `json:"begin,omitempty,omitzero"` // not before then; zero = at once
	timing.Timing
}

// check returns what is wrong, as a user sees it.
func (s *Search) check() string {
	switch {
	case s.Mode != "" && s.Mode != SearchAdaptive && s.Mode != SearchPaper:
		return fmt.Sprintf("--search %.40q: want %s or %s", s.Mode, SearchAdaptive, SearchPaper)
	case s.Radius < 0 || s.Radius > flood.MaxRadius:
		return fmt.Sprintf("--radius %d: want 1 to %d", s.Radius, flood.MaxRadius)
	case s.Wait != 0 && (time.Duration(s.Wait) < 10*time.Millisecond || time.Duration(s.Wait) > time.Hour):
		return fmt.Sprintf("--flood-wait %v: want 10ms to 1h", s.Wait)
	case s.Factor != 0 && !(s.Factor >= 1 && s.Factor <= 10):
		return fmt.Sprintf("--flood-factor %v: want 1 to 10", s.Factor)
	case !s.Begin.IsZero() && (s.Begin.UTC().Year() < 2000 || s.Begin.UTC().Year() > 8000):
		return fmt.Sprintf("--begin: the year %d, want 2000 to 8000", s.Begin.UTC().Year())
	}
	return s.Timing.Check(s.Begin)
}

// Schedule returns when to flood.
func (s *Search) Schedule() flood.Schedule {
	return flood.Schedule{Radius: s.Radius, First: time.Duration(s.Wait), Factor: s.Factor}
}

// Adaptive reports whether the job uses the adaptive search.
func (s *Search) Adaptive() bool { return s.Mode != SearchPaper }

// Conditions returns how many there are to be fulfilled before the job looks for workers.
func (s *Spec) Conditions() int {
	n := len(s.After)
	if !s.Search.Begin.IsZero() {
		n++
	}
	return n
}

// Validate checks everything that does not need a look at files or the
// network. Its errors wrap ErrInvalid and name the thing and the way out.
func (s *Spec) Validate() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
	}
	switch {
	case s.commandless():
		return bad("no command: put it after the options, as in 'zorilla run -n 4 -- ./prog'")
	case len(s.Args) > MaxArgs:
		return bad("%d arguments, at most %d", len(s.Args), MaxArgs)
	case len(s.Name) > MaxName || !sanitize.Printable(s.Name):
		return bad("name %.80q: at most %d printable characters", s.Name, MaxName)
	case s.Min < 1 || s.Max < s.Min:
		return bad("-n %d..%d: want at least 1, and MIN at most MAX", s.Min, s.Max)
	case s.Max > MaxRanks:
		return bad("-n %d: at most %d workers", s.Max, MaxRanks)
	case s.Slots < 1 || s.Slots > MaxSlots:
		return bad("-c %d: want 1 to %d slots per worker", s.Slots, MaxSlots)
	case s.Memory < 0:
		return bad("--mem %d: negative", s.Memory)
	case s.Disk < 0:
		return bad("--disk %d: negative", s.Disk)
	case s.GPUs < 0 || s.GPUs > MaxGPUs:
		return bad("--gpus %d: want 0 to %d", s.GPUs, MaxGPUs)
	case s.Walltime < 0 || time.Duration(s.Walltime) > MaxTime:
		return bad("-t %v: want 0 to %v", s.Walltime, MaxTime)
	case s.GiveUp < 0 || time.Duration(s.GiveUp) > MaxTime:
		return bad("--give-up %v: want 0 to %v", s.GiveUp, MaxTime)
	case s.Priority < -100 || s.Priority > 100:
		return bad("--priority %d: want -100 to 100", s.Priority)
	case len(s.Outputs) > MaxGlobs:
		return bad("%d output patterns, at most %d", len(s.Outputs), MaxGlobs)
	}
	if len(s.After) > MaxDependencies {
		return bad("-d: %d dependencies, at most %d", len(s.After), MaxDependencies)
	}
	for _, d := range s.After {
		if text := d.check(); text != "" {
			return bad("%s", text)
		}
	}
	if text := cmp.Or(s.checkArray(), s.Failing.check(), s.Search.check(), s.Search.CheckWith(s.Search.Begin, time.Duration(s.Walltime), s.Array != nil),
		s.checkGroups()); text != "" {
		return bad("%s", text)
	}
	if s.Where != "" {
		if _, err := where.Compile(s.Where); err != nil {
			return bad("--where: %v", err)
		}
	}
	if text := s.checkPlaces(); text != "" {
		return bad("%s", text)
	}
	if err := s.checkTexts(); err != nil {
		return bad("%v", err)
	}
	if text := s.checkNotices(); text != "" {
		return bad("%s", text)
	}
	for _, g := range s.Outputs {
		if err := checkGlob(g); err != nil {
			return bad("-o %q: %v", g, err)
		}
	}
	return nil
}

// checkPlaces returns what is wrong with where the workers should be.
func (s *Spec) checkPlaces() string {
	if text := s.checkMounts(); text != "" {
		return text
	}
	if err := checkNet(s.Net); err != nil {
		return fmt.Sprintf("--net %.40q: %v", s.Net, err)
	}
	if n := len(s.Condition()); n > where.MaxLength && s.Where != "" {
		return fmt.Sprintf("--where: %d bytes with what --net, --mpi, --share-work, --one-per-node and --checkpoint-far add, at most %d", n, where.MaxLength)
	}
	if err := placement.Strategy(s.Strategy).Check(); err != nil {
		return fmt.Sprintf("--strategy: %v", err)
	}
	if text := s.Placing.check(s); text != "" {
		return text
	}
	switch {
	case s.MPI && s.Array != nil:
		return "--mpi: the tasks of an array do not know of each other"
	case s.MPI && !s.FixedSize():
		return fmt.Sprintf("--mpi with -n %d..%d: the ranks of an MPI program start together; want -n N", s.Min, s.Max)
	case s.MPI && s.Net == NetNone && s.Min > 1:
		return "--mpi: ranks with --net none find each other at one node only; want --net job or host"
	case s.ShareWork && s.Array != nil:
		return "--share-work: each task of an array begins in a directory of its own"
	case s.ShareWork && !s.FixedSize():
		return fmt.Sprintf("--share-work with -n %d..%d: ranks that come later would find what others have written; want -n N", s.Min, s.Max)
	case s.ShareWork && s.Replicas > 1:
		return "--share-work with --replicas: the files of one copy would be those of others"
	case s.CheckpointFar && s.Array != nil:
		return "--checkpoint-far: the tasks of an array make no checkpoints"
	case s.CheckpointFar && s.ShareWork:
		return "--checkpoint-far with --share-work, whose ranks make no checkpoints: want one of them"
	case s.Replicas < 0 || s.Replicas > MaxReplicas:
		return fmt.Sprintf("--replicas %d: want 1 to %d", s.Replicas, MaxReplicas)
	case s.Replicas > 1 && s.Array != nil:
		return "--replicas: the tasks of an array are done again by themselves if they are lost"
	case s.Replicas > 1 && !s.FixedSize():
		return fmt.Sprintf("--replicas with -n %d..%d: a job that grows replaces lost ranks; want -n N", s.Min, s.Max)
	case s.Replicas > 1 && s.Workers() > MaxRanks:
		return fmt.Sprintf("-n %d with --replicas %d: at most %d workers in all", s.Max, s.Replicas, MaxRanks)
	}
	return ""
}

// checkTexts checks arguments and environment.
func (s *Spec) checkTexts() error {
	if err := s.checkKey(); err != nil {
		return err
	}
	size := 0
	for _, a := range s.Args {
		if strings.ContainsRune(a, 0) {
			return fmt.Errorf("argument %.40q holds a zero byte", a)
		}
		if !utf8.ValidString(a) {
			return fmt.Errorf("argument %.40q %s", a, notUTF8)
		}
		size += len(a)
	}
	for k, v := range s.Env {
		if k == "" || strings.ContainsAny(k, "=\x00") || strings.ContainsRune(v, 0) {
			return fmt.Errorf("environment variable %.40q: want NAME=VALUE", k)
		}
		if !utf8.ValidString(k) || !utf8.ValidString(v) {
			return fmt.Errorf("environment variable %.40q: its value %.40q %s", k, v, notUTF8)
		}
		if strings.HasPrefix(k, ownVariables) {
			return fmt.Errorf("environment variable %s: names that begin with ZORILLA_ are set by zorilla", k)
		}
		size += len(k) + len(v)
	}
	if size > MaxArgBytes {
		return fmt.Errorf("arguments and environment take %d bytes, at most %d: put them into an input file", size, MaxArgBytes)
	}
	return nil
}

// notUTF8 is why a text is refused that would arrive as another one.
const notUTF8 = `is not valid UTF-8 and would not arrive as it is: have the job make it, as printf '\351' does, or read it from an input file`

// checkGlob accepts patterns that can only name files below the work directory.
func checkGlob(g string) error {
	if g == "" || len(g) > 4096 {
		return errors.New("want a pattern such as 'out-*'")
	}
	if !utf8.ValidString(g) {
		return fmt.Errorf("%.40q is not valid UTF-8, and files with such names are no outputs: "+
			"? and * in a pattern stand for such bytes, in names that the job then has to change", g)
	}
	if !sanitize.Printable(g) {
		return errors.New("want a pattern such as 'out-*'")
	}
	if path.IsAbs(g) {
		return errors.New("want a pattern relative to the work directory")
	}
	for part := range strings.SplitSeq(g, "/") {
		if part == ".." {
			return errors.New("must stay inside the work directory")
		}
	}
	if _, err := path.Match(g, ""); err != nil {
		return err
	}
	return nil
}

// RankAttempt names one try of one rank. Everything that a worker sends
// carries it, and the primary drops what it no longer owns.
type RankAttempt struct {
	Rank    int `json:"rank"`
	Attempt int `json:"attempt"`
}

// MaxKey bounds the key of a submission.
const MaxKey = 64

// MaxApart stands for a round trip that could not be measured.
const MaxApart = 10 * time.Second

func (s *Spec) checkKey() error {
	if len(s.Key) > MaxKey || strings.Trim(s.Key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:") != "" {
		return fmt.Errorf("--key %.80q: want at most %d letters, digits and -_.: in it", s.Key, MaxKey)
	}
	return nil
}

// Sum tells specs apart. Those that differ by when they begin are the same: "in two hours" is
// another time each time it is said.
func (s *Spec) Sum() [sha256.Size]byte {
	c := *s
	c.Search.Begin, c.Search.Deadline = time.Time{}, time.Time{}
	return sha256.Sum256(codec.MustMarshal(&c))
}

// Gathered lists the patterns of the files that are stored when a worker has ended.
func (s *Spec) Gathered() []string {
	if s.Array != nil { // files of tasks came with their results
		return nil
	}
	return s.Outputs
}

// JointChoice reports whether more than the distance of each node counts for the choice of the job's
// nodes: whether offers are enough is known only by trying.
func (s *Spec) JointChoice() bool {
	return s.Pairwise() || s.Replicas > 1 || len(s.Groups) > 0 || s.Mapped()
}

// StopsOnBadExit reports whether one rank that fails stops the others.
func (s *Spec) StopsOnBadExit() bool {
	if s.KillOnBadExit != nil && !s.MPI {
		return *s.KillOnBadExit
	}
	return s.FixedSize()
}
