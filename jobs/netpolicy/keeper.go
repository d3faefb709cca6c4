package netpolicy

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"zorilla/jobs/cgroup"
)

// handover is how long what an earlier Keeper has set in a group holds besides what this
// one is told: a node that has just come back does not know all others yet.
const handover = time.Minute

// Keeper sets what the jobs of a node reach. A node has one, whose methods may be called
// from any goroutine; the zero value is ready.
type Keeper struct {
	mu sync.Mutex
	of map[string]*held // by group
}

// held is what a Keeper knows of a group.
type held struct {
	id     uint64       // of its directory: another one of the same path has nothing
	set    []entry      // nil = not known
	before []netip.Addr // what an earlier Keeper let it reach, for a while
	until  time.Time
}

// Admit makes the group around the workers of a job, see cgroup.Place.Reserve, where the
// addresses hold before it returns.
func (k *Keeper) Admit(its *cgroup.Place, worker string, addrs []netip.Addr) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := its.Reserve(worker); err != nil {
		return err
	}
	for group := range k.of {
		if _, err := os.Lstat(group); err != nil {
			delete(k.of, group)
		}
	}
	if err := k.hold(its.Around, addrs); err != nil {
		_ = os.Remove(filepath.Join(its.Around, worker))
		its.Left()
		return err
	}
	return nil
}

// Change replaces the addresses of a job that has workers. Those that an earlier Keeper
// has set for it, of a node that came back, hold for another minute.
func (k *Keeper) Change(its *cgroup.Place, addrs []netip.Addr) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.hold(its.Around, addrs)
}

// hold sets what is not set yet.
func (k *Keeper) hold(group string, addrs []netip.Addr) error {
	if len(addrs) > MaxAddrs {
		return fmt.Errorf("whom to reach: %d addresses, at most %d", len(addrs), MaxAddrs)
	}
	dir, err := os.Open(group)
	if err == nil {
		defer dir.Close()
		err = k.holdIn(dir, addrs)
	}
	if err != nil {
		return fmt.Errorf("whom to reach: %w", err)
	}
	return nil
}

func (k *Keeper) holdIn(dir *os.File, addrs []netip.Addr) error {
	has, err := machine()
	if err != nil {
		return err
	}
	its, err := k.know(dir)
	if err != nil {
		return err
	}
	if len(its.before) > 0 && time.Now().Before(its.until) {
		addrs = slices.Concat(addrs, its.before)
		addrs = addrs[:min(len(addrs), MaxAddrs)]
	}
	list := entries(addrs, has)
	if slices.Equal(its.set, list) {
		return nil
	}
	its.set = nil // also if only some of it can be set
	if err := set(dir, its.id, list); err != nil {
		return err
	}
	its.set = list
	return nil
}

// know returns what is known of a group, which is its directory and not its path.
func (k *Keeper) know(dir *os.File) (*held, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &st); err != nil {
		return nil, err
	}
	if its := k.of[dir.Name()]; its != nil && its.id == st.Ino {
		return its, nil
	}
	before, err := reached(dir)
	if err != nil {
		return nil, err
	}
	if k.of == nil {
		k.of = map[string]*held{}
	}
	its := &held{id: st.Ino, before: before, until: time.Now().Add(handover)}
	k.of[dir.Name()] = its
	return its, nil
}
