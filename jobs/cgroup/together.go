package cgroup

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// Jointly returns the place for the groups of those workers of one job that share the
// processors as one: who waits for another one of them gives way to it (sched_yield),
// which does nothing for who is in another group. Each still has memory, processes and
// disk for itself. p may be one of Place.Of. Without groups for the processors it is p.
func (p *Place) Jointly(job string) Place {
	its := *p
	if _, ok := p.Dirs["cpu"]; !ok || job == "" {
		return its
	}
	its.Together = around + groupName(job)
	if p.Unified && p.Around == "" {
		of, err := p.Of(job)
		if err != nil {
			return its
		}
		its.Dirs, its.Around, its.Open = of.Dirs, of.Around, true
	}
	return its
}

// takes is the hierarchy of version 1 in which workers are together; "" = none.
func (p *Place) takes() string {
	if p.Together == "" || p.Unified {
		return ""
	}
	return p.Dirs["cpu"]
}

// share has a worker's directories be those where it is together with others. That of
// version 1 is counted for all of them.
func (p *Place) share(dirs map[string]string) {
	if p.Unified {
		delete(dirs, "cpu")
		return
	}
	dirs["cpu"] = filepath.Join(p.takes(), p.Together)
	if p.Dirs["cpuacct"] == p.takes() {
		delete(dirs, "cpuacct")
	}
}

// common is the group that has the processors for all of them; "" = none. Each worker has
// one in it, in version 1 without processes, so that it stays as long as they do, and that
// they can be counted.
func (p *Place) common() string {
	if p.Together != "" && p.Unified {
		return p.Around
	}
	if dir := p.takes(); dir != "" {
		return filepath.Join(dir, p.Together)
	}
	return ""
}

// gather makes what workers have together.
func (p *Place) gather() error {
	switch dir := p.common(); {
	case dir == "":
		return nil
	case p.Unified && p.Open:
		return p.surround()
	case p.Unified: // it was reserved
		return nil
	default:
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		return nil
	}
}

// scatter removes what workers had together after the last of them, or gives the others
// less; share 0 = who removes it does not know how much.
func (p *Place) scatter(share int) {
	dir := p.common()
	if dir == "" || (!p.Unified || p.Open) && unix.Rmdir(dir) == nil {
		return
	}
	if share > 0 {
		p.weigh(share)
	}
}

// weighTogether gives what workers have together the shares of all of them.
func (p *Place) weighTogether(share int) {
	file, most := "cpu.weight", weight
	if !p.Unified {
		file, most = "cpu.shares", cpuShares
	}
	dir := p.common()
	for range 10 {
		within, _ := filepath.Glob(filepath.Join(dir, "*", "cgroup.procs"))
		sum := min(most*share*len(within), maxShares(p.Unified))
		if sum == 0 || number(filepath.Join(dir, file)) == int64(sum) || set(dir, file, strconv.Itoa(sum)) != nil {
			return
		}
	}
}

func maxShares(unified bool) int {
	if unified {
		return maxWeight
	}
	return maxCPUShares
}
