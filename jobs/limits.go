package jobs

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"zorilla/internal/codec"
	"zorilla/internal/sanitize"
	"zorilla/internal/units"
	"zorilla/internal/uplink"
	"zorilla/jobs/hours"
	"zorilla/vicinity"
)

// Limits is what the owner of a node allows. The zero value lets all work in,
// and shows workers nothing but the system.
type Limits struct {
	Paused           bool `json:"paused"`              // no new work, for whomever; what runs goes on
	MaxJobs          int  `json:"max_jobs"`            // jobs with workers here at a time; 0 = no limit
	MaxWorkersPerJob int  `json:"max_workers_per_job"` // 0 = no limit

	// Whose jobs are welcome: node IDs or their first characters (5 or more),
	// names, and networks, of the origins. Deny wins; an empty Allow means
	// everybody. The node's own jobs are always welcome. IDs are proven; names
	// and addresses are what nodes say of themselves.
	Allow []string `json:"allow"`
	Deny  []string `json:"deny"`

	// Expose are paths that all workers are shown, PATH:ro or PATH:rw; see shown.List.
	Expose []string `json:"expose"`
	// Mounts is what jobs that were submitted here may ask for beyond them.
	Mounts string `json:"mounts"`

	// Network is the most that workers may reach: NetNone, NetJob or NetHost; "" = NetHost.
	Network string `json:"network,omitempty"`

	// UploadLimit is how many bytes of files and output the node sends to other nodes in
	// a second, uplink.Least at the lowest; 0 = no limit.
	UploadLimit int64 `json:"upload_limit,omitempty"`

	// MaxKept is how many bytes of checkpoints of other nodes' workers, and of its own, the node keeps:
	// 0 = DefaultKept, KeepNone = none.
	MaxKept int64 `json:"max_kept,omitempty"`

	TimeLimits
}

// DefaultKept is how many bytes of checkpoints a node keeps whose owner has not said, KeepNone is what an owner says
// who keeps none.
const (
	DefaultKept = 10 << 30
	KeepNone    = -1
)

// KeptBytes is how many bytes of checkpoints the node keeps at most.
func (l *Limits) KeptBytes() int64 {
	if l.MaxKept == 0 {
		return DefaultKept
	}
	return max(0, l.MaxKept)
}

const (
	maxListed    = 256 // entries of a list
	maxListEntry = 64  // bytes
)

// Validate says what is wrong with limits that come from a file or a client.
func (l *Limits) Validate() error {
	if l.MaxJobs < 0 || l.MaxJobs > MaxRanks {
		return fmt.Errorf("max-jobs %d: want 0 (no limit) to %d", l.MaxJobs, MaxRanks)
	}
	if l.MaxWorkersPerJob < 0 || l.MaxWorkersPerJob > MaxRanks {
		return fmt.Errorf("max-workers-per-job %d: want 0 (no limit) to %d", l.MaxWorkersPerJob, MaxRanks)
	}
	if l.UploadLimit != 0 && l.UploadLimit < uplink.Least {
		return fmt.Errorf("upload-limit %d: want none, or %s a second or more", l.UploadLimit, units.Bytes(uplink.Least))
	}
	if l.MaxKept < KeepNone {
		return fmt.Errorf("max-kept %d: want a size, or 0 for none", l.MaxKept)
	}
	if err := errors.Join(l.checkShown(), l.checkNetwork(), l.checkTime()); err != nil {
		return err
	}
	for name, list := range map[string][]string{"allow": l.Allow, "deny": l.Deny} {
		if len(list) > maxListed {
			return fmt.Errorf("%s: %d entries, at most %d", name, len(list), maxListed)
		}
		for _, e := range list {
			if err := checkListed(e); err != nil {
				return fmt.Errorf("%s %.80q: %w", name, e, err)
			}
		}
	}
	return nil
}

func checkListed(e string) error {
	if e == "" || len(e) > maxListEntry || !sanitize.Printable(e) || strings.ContainsRune(e, ',') {
		return fmt.Errorf("want a node's ID, its name, or a network such as 10.1.0.0/16, in at most %d bytes", maxListEntry)
	}
	if strings.Contains(e, "/") {
		if _, err := netip.ParsePrefix(e); err != nil {
			return errors.New("this is no network: want one such as 10.1.0.0/16")
		}
	}
	return nil
}

// Change makes one change, as people write it: max-jobs=2, max-workers-per-job=none,
// paused=yes, deny=A,B, deny+=A, deny-=A, allow=none, expose+=/data:ro, mounts=own,
// upload-limit=10M, max-kept=20G, hours=mon-fri 19:00-07:00, after-hours=end, max-walltime=8h.
// Nothing is changed if it returns an error.
func (l *Limits) Change(text string) error {
	key, value, found := strings.Cut(text, "=")
	op := byte(0)
	if found && key != "" && strings.IndexByte("+-", key[len(key)-1]) >= 0 {
		key, op = key[:len(key)-1], key[len(key)-1]
	}
	next := *l
	var err error
	switch {
	case !found:
		err = errors.New("want NAME=VALUE")
	case key == "allow":
		next.Allow, err = listed(l.Allow, op, value)
	case key == "deny":
		next.Deny, err = listed(l.Deny, op, value)
	case key == "expose":
		next.Expose, err = exposed(l.Expose, op, value)
	case op != 0:
		err = fmt.Errorf("only allow, deny and expose can be changed with %c=", op)
	case key == "max-jobs":
		next.MaxJobs, err = limit(value)
	case key == "max-workers-per-job":
		next.MaxWorkersPerJob, err = limit(value)
	case key == "paused":
		next.Paused, err = yesNo(value)
	case key == "mounts":
		next.Mounts, err = mountsOf(value)
	case key == "upload-limit":
		next.UploadLimit, err = uploadLimit(value)
	case key == "max-kept":
		next.MaxKept, err = maxKept(value)
	case key == "network":
		next.Network, err = value, checkNet(value)
	case key == "hours":
		next.Hours, err = hoursOf(value)
	case key == "after-hours":
		next.AfterHours, err = afterHours(value)
	case key == "max-walltime":
		next.MaxWalltime, err = maxWalltime(value)
	default:
		err = errors.New("there are max-jobs, max-workers-per-job, allow, deny, expose, mounts, network, upload-limit, max-kept, " +
			"hours, after-hours, max-walltime and paused")
	}
	if err != nil {
		return fmt.Errorf("%.80q: %w", text, err)
	}
	if err := next.Validate(); err != nil {
		return err
	}
	*l = next
	return nil
}

func limit(value string) (int, error) {
	if value == "none" {
		return 0, nil
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 {
		return 0, errors.New("want a number from 1, or none")
	}
	return n, nil
}

func uploadLimit(value string) (int64, error) {
	if value == "none" {
		return 0, nil
	}
	return units.ParseBytes(value)
}

func maxKept(value string) (int64, error) {
	switch value {
	case "none":
		return math.MaxInt64, nil
	case "0":
		return KeepNone, nil
	}
	return units.ParseBytes(value)
}

func yesNo(value string) (bool, error) {
	switch value {
	case "yes", "true":
		return true, nil
	case "no", "false":
		return false, nil
	}
	return false, errors.New("want yes or no")
}

// listed returns a list as it is after a change: replaced, or with or without
// what is named.
func listed(old []string, op byte, value string) ([]string, error) {
	named := parts(op, value)
	switch op {
	case '+':
		list := slices.Clone(old)
		for _, e := range named {
			if !slices.Contains(list, e) {
				list = append(list, e)
			}
		}
		return list, nil
	case '-':
		for _, e := range named {
			if !slices.Contains(old, e) {
				return nil, fmt.Errorf("%.40q is not in the list", e)
			}
		}
		return slices.DeleteFunc(slices.Clone(old), func(e string) bool { return slices.Contains(named, e) }), nil
	}
	return named, nil
}

// parts splits what a list is changed by; a list that is set to none is empty.
func parts(op byte, value string) (named []string) {
	if value == "none" && op == 0 {
		return nil
	}
	for part := range strings.SplitSeq(value, ",") {
		if part = strings.TrimSpace(part); part != "" && !slices.Contains(named, part) {
			named = append(named, part)
		}
	}
	return named
}

// Admits reports whether an origin's jobs are welcome. Of a node that is not
// known yet, which has no name, only what is certain counts: it is not welcome
// where its name could exclude it.
func (l *Limits) Admits(origin vicinity.Member) bool {
	if len(l.Deny) > 0 && (meant(l.Deny, origin) || origin.Name == "" && slices.ContainsFunc(l.Deny, mayBeName)) {
		return false
	}
	return len(l.Allow) == 0 || meant(l.Allow, origin)
}

// meant reports whether a list names a node.
func meant(list []string, m vicinity.Member) bool {
	return slices.ContainsFunc(list, func(e string) bool {
		if e == m.Name || len(e) >= 5 && strings.HasPrefix(string(m.ID), e) {
			return true
		}
		network, err := netip.ParsePrefix(e)
		if err != nil {
			addr, err := netip.ParseAddr(e)
			if err != nil {
				return false
			}
			network = netip.PrefixFrom(addr, addr.BitLen())
		}
		return slices.ContainsFunc(m.Addrs, func(a string) bool {
			addr, err := netip.ParseAddrPort(a)
			return err == nil && network.Contains(addr.Addr().Unmap())
		})
	})
}

// mayBeName reports whether an entry can mean a node that has such a name.
func mayBeName(e string) bool {
	if _, err := netip.ParsePrefix(e); err == nil {
		return false
	}
	_, err := netip.ParseAddr(e)
	return err != nil && !vicinity.ID(e).Valid()
}

// TimeLimits say when the owner lends the machine, and for how long.
type TimeLimits struct {
	// Hours are when there is new work, by the clock of the machine; the zero value = always.
	Hours hours.Week `json:"hours,omitzero"`
	// AfterHours is what becomes of workers that run when the hours end: HoursFinish or HoursEnd; "" = HoursFinish.
	AfterHours string `json:"after_hours,omitempty"`
	// MaxWalltime is the longest walltime of jobs that come here, and the walltime of those without one; 0 = no limit.
	MaxWalltime codec.Duration `json:"max_walltime,omitempty"`
}

// What becomes of workers when the hours end.
const (
	HoursFinish = "finish" // they go on
	HoursEnd    = "end"    // they are ended, and the machine is free then
)

const leastMaxWalltime = time.Second

func (l *TimeLimits) checkTime() error {
	if _, err := afterHours(cmp.Or(l.AfterHours, HoursFinish)); err != nil {
		return fmt.Errorf("after-hours %.40q: %w", l.AfterHours, err)
	}
	if d := l.MaxWalltime.Std(); d != 0 && (d < leastMaxWalltime || d > MaxTime) {
		return fmt.Errorf("max-walltime %v: want %v to %v, or none", d, leastMaxWalltime, MaxTime)
	}
	return nil
}

func hoursOf(value string) (hours.Week, error) {
	if value == "none" {
		return hours.Week{}, nil
	}
	return hours.Parse(value)
}

func afterHours(value string) (string, error) {
	switch value {
	case HoursFinish:
		return "", nil
	case HoursEnd:
		return value, nil
	}
	return "", errors.New("want finish or end")
}

func maxWalltime(value string) (codec.Duration, error) {
	if value == "none" {
		return 0, nil
	}
	d, err := units.ParseSpan(value)
	return codec.Duration(d), err
}

// Waiting is a job that waits for room at a node.
type Waiting struct {
	Job      ID          `json:"job"`
	Origin   vicinity.ID `json:"origin"`
	Priority int         `json:"priority"`
	Wanted   int         `json:"wanted"` // workers that it looks for, at all nodes together
	Slots    int         `json:"slots"`  // per worker
	Memory   int64       `json:"memory,omitempty"`
	Disk     int64       `json:"disk,omitempty"`
	GPUs     int         `json:"gpus,omitempty"`
	Reason   string      `json:"reason"`           // why nothing is offered to it now; "" = something is, or it did not ask of late
	Since    time.Time   `json:"since,omitzero"`   // zero = it did not ask of late
	Expires  time.Time   `json:"expires,omitzero"` // if its origin does not ask again
	Booked   *Booking    `json:"booked,omitempty"` // room that it has been promised; nil = none
}

// Booking is room that a node has promised to a job from a time on.
type Booking struct {
	From      time.Time `json:"from"`
	To        time.Time `json:"to,omitzero"` // zero = without end
	Workers   int       `json:"workers"`
	Slots     int       `json:"slots"`     // of all of them together
	Confirmed bool      `json:"confirmed"` // else it ends in a few seconds
}
