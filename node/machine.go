package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"

	"zorilla/node/gossip"
	"zorilla/node/speed"
	"zorilla/vicinity"
)

// findProcesses returns how many processes and threads workers may have together, so
// that some of the machine's remain; 0 = it is not told.
func findProcesses(root fs.FS) int {
	least := 0
	for _, name := range []string{"pid_max", "threads-max"} {
		b, err := fs.ReadFile(root, "proc/sys/kernel/"+name)
		if err != nil {
			continue
		}
		if n, err := strconv.Atoi(strings.TrimSpace(string(b))); err == nil && (least == 0 || n < least) {
			least = n
		}
	}
	return least / 4 * 3
}

// findMemory returns how many bytes of memory the machine has, in a file system
// that begins at the root; 0 = it is not told. sysinfo(2) would not do: a
// container that is given less than its host tells so in this file only.
func findMemory(root fs.FS) int64 {
	f, err := root.Open("proc/meminfo")
	if err != nil {
		return 0
	}
	defer f.Close()
	var kilobytes int64
	if _, err := fmt.Fscanf(f, "MemTotal: %d kB\n", &kilobytes); err != nil {
		return 0
	}
	return kilobytes << 10
}

// coresOf lists the processors that this process may use, if workers are to be given some.
func coresOf(pin bool, slots int) (cores []int, err error) {
	if !pin {
		return nil, nil
	}
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("--pin: %w", err)
	}
	for i := 0; len(cores) < set.Count(); i++ {
		if set.IsSet(i) {
			cores = append(cores, i)
		}
	}
	if slots > len(cores) {
		return nil, fmt.Errorf("--pin: %d slots and %d processors: give the node fewer slots", slots, len(cores))
	}
	return cores, nil
}

// ErrMoved is why a node stops that others do not find any more: the address that it told them
// is none of this machine's now, and it has others. Its owner starts it again.
var ErrMoved = errors.New("the address of this machine has changed")

const (
	lookAround = 500 * time.Millisecond // at the addresses of the machine
	movedFor   = 3                      // looks, since an address may go and come again
)

// listensEverywhere reports whether a node that listens there has no address of its own but those
// of its machine.
func listensEverywhere(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	ip, _ := netip.ParseAddr(host)
	return err == nil && (host == "" || ip.IsUnspecified())
}

// awaitMove returns ErrMoved once the machine has addresses, and not the one that told returns as
// host:port, or nil when ctx ends.
func awaitMove(ctx context.Context, addrs func() ([]netip.Addr, error), told func() string) error {
	tick := time.NewTicker(lookAround)
	defer tick.Stop()
	for missed := 0; missed < movedFor; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		now, err := addrs()
		own, err2 := netip.ParseAddrPort(told())
		if err != nil || err2 != nil || len(now) == 0 || slices.Contains(now, own.Addr()) {
			missed = 0 // a machine that has none waits for its network
			continue
		}
		missed++
	}
	return ErrMoved
}

// speeds are what a node finds out of its machine, and says.
type speeds struct {
	known vicinity.Speeds // at the start
	meter *speed.Meter    // nil = the power is not measured
	said  *gossip.Said
	log   zerolog.Logger
}

// findSpeeds finds how fast the machine is, as its owner says, else as it reports, and what was
// measured in an earlier run.
func findSpeeds(owner vicinity.Speeds, listen string, meter *speed.Meter) vicinity.Speeds {
	s := owner
	s.Clock = cmp.Or(s.Clock, speed.Clock(meter.Root))
	s.Power = cmp.Or(s.Power, meter.Kept())
	if s.Bandwidth == 0 {
		s.Bandwidth = speed.Bandwidth(meter.Root, speed.Facing(meter.Root, listen, interfaces()))
	}
	return s
}

// measure has the power measured, unless it is known, and calls found with what self says then.
func (s *speeds) measure(ctx context.Context, self func() vicinity.Member, found func(vicinity.Member)) error {
	s.check(s.known, self())
	if s.meter == nil || s.known.Power > 0 {
		return nil
	}
	power, err := s.meter.Await(ctx)
	if power == 0 {
		return nil
	}
	if err != nil {
		s.log.Warn().Err(err).Msg("the next start measures again")
	}
	s.log.Info().Int64("power", power).Msg("a core of this machine was measured")
	now := s.known
	now.Power = power
	if err := s.said.SetSpeeds(now); err != nil {
		return err
	}
	s.check(now, self())
	found(self())
	return nil
}

// check warns if others do not hear of these speeds.
func (s *speeds) check(now vicinity.Speeds, self vicinity.Member) {
	if self.Speeds != now {
		s.log.Warn().Msg("labels and addresses leave no room for clock, power and bandwidth, " +
			"so that no node hears of them: give the node fewer labels, or shorter ones")
	}
}

// interfaces lists the machine's; none if the system does not say.
func interfaces() (list []speed.Interface) {
	all, _ := net.Interfaces()
	for i := range all {
		addrs, err := all[i].Addrs()
		if err != nil {
			continue
		}
		one := speed.Interface{Name: all[i].Name}
		for _, a := range addrs {
			if p, err := netip.ParsePrefix(a.String()); err == nil {
				one.Addrs = append(one.Addrs, p)
			}
		}
		list = append(list, one)
	}
	return list
}
