package jobs

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs/internal/where"
	"zorilla/jobs/mounts"
	"zorilla/jobs/placement"
	"zorilla/jobs/placement/mapping"
)

// What a job that was submitted at a node may ask for there beyond what the node's owner
// shows to all: values of Limits.Mounts.
const (
	MountsOwn      = "own"     // any path, to read: who can submit there can read it anyway; also ""
	MountsOwnWrite = "own:rw"  // and to write
	MountsExposed  = "exposed" // nothing
)

// MaxMounts is how many paths a job may ask for.
const MaxMounts = 8

// The protocol versions of nodes that know Mounts and Net, NetJob, MPI, ShareWork, groups, OnePerNode and CheckpointFar, and Spares;
// CurrentVersion is that of this program.
const (
	wallVersion   = 3
	fenceVersion  = 4
	mpiVersion    = 5
	shareVersion  = 7
	groupVersion  = 8
	singleVersion = 9
	// CheckpointVersion is that of nodes that keep checkpoints, and give them to ranks.
	CheckpointVersion = 9
	spareVersion      = 10

	CurrentVersion = spareVersion
)

// checkMounts returns what is wrong with the paths that the job asks for, as a user sees it.
func (s *Spec) checkMounts() string {
	if len(s.Mounts) == 0 {
		return ""
	}
	if len(s.Mounts) > MaxMounts {
		return fmt.Sprintf("--mount: %d paths, at most %d", len(s.Mounts), MaxMounts)
	}
	list, err := mounts.ParseAll(s.Mounts)
	if err != nil {
		return fmt.Sprintf("--mount %v", err)
	}
	if !slices.Equal(list.Strings(), s.Mounts) {
		return fmt.Sprintf("--mount %.300q: want PATH:ro or PATH:rw, with clean paths", s.Mounts)
	}
	if n := SizeOfMounts(s.Mounts) + len(s.Condition()); n > where.MaxLength {
		return fmt.Sprintf("--mount and --where: %d bytes too long together: both travel in one packet", n-where.MaxLength)
	}
	if _, err := where.Compile(s.Condition()); err != nil {
		return fmt.Sprintf("--mount and --where: %v", err)
	}
	return ""
}

// SizeOfMounts is how much of an advertisement the paths take, in bytes.
func SizeOfMounts(mounts []string) int {
	n := 0
	for _, m := range mounts {
		n += len(m) + 2
	}
	return n
}

// Condition is the expression that a node must fulfil: that of the user, and that the
// node knows what is asked for. An older one would offer, and show nothing.
func (s *Spec) Condition() string {
	version := wallVersion
	switch {
	case s.Spares > 0:
		version = spareVersion
	case s.Single(), s.CheckpointFar:
		version = singleVersion
	case len(s.Groups) > 0:
		version = groupVersion
	case s.ShareWork:
		version = shareVersion
	case s.MPI:
		version = mpiVersion
	case s.Net == NetJob:
		version = fenceVersion
	case len(s.Mounts) == 0 && s.Net != NetNone:
		return s.Where
	}
	known := fmt.Sprintf("version >= %d", version)
	if s.Where == "" {
		return known
	}
	return known + " && (" + s.Where + ")"
}

// Exposed are the paths that the owner shows to all workers.
func (l *Limits) Exposed() mounts.List {
	list, _ := mounts.ParseAll(l.Expose) // Validate has done that
	return list
}

// Grant decides what a job is shown that asks for mounts: what all are shown, and what it
// alone gets since it was submitted at this node (own). It names the first mount that the
// owner shows neither way, or returns "".
func (l *Limits) Grant(own bool, asked []string) (all mounts.List, missing string) {
	exposed := l.Exposed()
	all = slices.Clone(exposed)
	for _, text := range asked {
		m, err := mounts.Parse(text)
		switch {
		case err != nil:
			return nil, text
		case exposed.Allows(m): // nothing more is opened, so that links there lead nowhere
		case own && (l.Mounts == MountsOwnWrite || l.Mounts != MountsExposed && !m.Write):
			all = append(slices.DeleteFunc(all, func(p mounts.Path) bool { return p.Path == m.Path }), m)
		default:
			return nil, m.Path
		}
	}
	return all, ""
}

// exposed returns the list of paths as it is after a change: replaced, or with or without
// what is named. One that is named again has its new ending.
func exposed(old []string, op byte, value string) ([]string, error) {
	paths, err := mounts.ParseAll(parts(op, value))
	if err != nil || op == 0 {
		return paths.Strings(), err
	}
	list, err := mounts.ParseAll(old)
	if err != nil {
		return nil, err
	}
	for _, p := range paths {
		i := slices.IndexFunc(list, func(e mounts.Path) bool { return e.Path == p.Path })
		switch {
		case op == '-' && i < 0:
			return nil, fmt.Errorf("%.80q is not in the list", p.Path)
		case op == '-':
			list = slices.Delete(list, i, i+1)
		case i >= 0:
			list[i] = p
		default:
			list = append(list, p)
		}
	}
	return list.Strings(), nil
}

func mountsOf(value string) (string, error) {
	if !slices.Contains([]string{MountsOwn, MountsOwnWrite, MountsExposed}, value) {
		return "", errors.New("want own, own:rw or exposed")
	}
	return value, nil
}

// checkShown says what is wrong with what is shown, of limits that come from a file.
func (l *Limits) checkShown() error {
	if len(l.Expose) > maxListed {
		return fmt.Errorf("expose: %d entries, at most %d", len(l.Expose), maxListed)
	}
	if _, err := mounts.ParseAll(l.Expose); err != nil {
		return fmt.Errorf("expose %w", err)
	}
	if l.Mounts != "" {
		if _, err := mountsOf(l.Mounts); err != nil {
			return fmt.Errorf("mounts %.40q: %w", l.Mounts, err)
		}
	}
	return nil
}

// Placing is how the nodes of a job are to be to each other.
type Placing struct {
	MaxRTT     codec.Duration  `json:"max_rtt,omitempty"`      // between any two of them; 0 = no bound
	OnePerNode bool            `json:"one_per_node,omitempty"` // no two workers are at one
	Graph      *mapping.Listed `json:"graph,omitempty"`        // by which ranks are placed; nil = by their distances alone
	Spares     int             `json:"spares,omitempty"`       // room for so many workers more, for ranks that may be lost
}

// check returns what is wrong, as a user sees it.
func (p *Placing) check(s *Spec) string {
	switch {
	case p.MaxRTT < 0 || time.Duration(p.MaxRTT) > MaxApart:
		return fmt.Sprintf("--max-rtt %v: want more than 0, up to %v", p.MaxRTT, MaxApart)
	case p.OnePerNode && placement.Strategy(s.Strategy) == placement.Concentrate:
		return "--one-per-node with --strategy concentrate, which fills each node: want one of them"
	case s.Single() && s.ShareWork:
		return "--one-per-node, or --strategy maheve, with --share-work: there is nobody to share a directory with; want one of them"
	}
	if text := p.checkSpares(s); text != "" {
		return text
	}
	return s.checkGraph()
}

// checkSpares returns what is wrong with the spares, as a user sees it.
func (p *Placing) checkSpares(s *Spec) string {
	switch {
	case p.Spares == 0:
		return ""
	case p.Spares < 0 || p.Spares > s.Max:
		return fmt.Sprintf("--spares %d: want 0 to %d, the number of workers", p.Spares, s.Max)
	case s.Array != nil:
		return "--spares with an array: its tasks run again wherever there is room; leave it out"
	case s.Replicas > 1:
		return "--spares with --replicas: none of the copies is replaced; want one of them"
	case len(s.Groups) > 0:
		return "--spares with groups, whose workers may differ: leave it out"
	case s.Rigid() && s.Retries == 0:
		return "--spares: a job of -n N ends when a rank is lost; with --retries N it starts again, with -n MIN..MAX the rank is replaced"
	}
	return ""
}
