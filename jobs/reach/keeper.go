package reach

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"zorilla/jobs/cgroup"
)

// Keeper sets what the jobs of a node reach. A node has one, whose methods may be called
// from any goroutine; the zero value is ready.
type Keeper struct {
	mu  sync.Mutex
	set map[string][]entry // by group, as far as this Keeper knows
}

// Admit makes the group around the workers of a job, see cgroup.Place.Reserve, where the
// addresses hold before it returns.
func (k *Keeper) Admit(its *cgroup.Place, worker string, addrs []netip.Addr) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	fresh, err := its.Reserve(worker)
	if err != nil {
		return err
	}
	for group := range k.set {
		if _, err := os.Lstat(group); err != nil || fresh && group == its.Around {
			delete(k.set, group)
		}
	}
	if err := k.hold(its.Around, addrs); err != nil {
		_ = os.Remove(filepath.Join(its.Around, worker))
		its.Left()
		return err
	}
	return nil
}

// Change replaces the addresses of a job that has workers.
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
	has, err := machine()
	if err != nil {
		return fmt.Errorf("whom to reach: %w", err)
	}
	list := entries(addrs, has)
	if slices.Equal(k.set[group], list) {
		return nil
	}
	if err := set(group, list); err != nil {
		return fmt.Errorf("whom to reach: %w", err)
	}
	if k.set == nil {
		k.set = map[string][]entry{}
	}
	k.set[group] = list
	return nil
}
