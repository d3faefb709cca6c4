package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"zorilla/internal/atomicfile"
	"zorilla/jobs"
	"zorilla/node/api"
)

// owner keeps what the machine's owner allows, in memory and on disk.
type owner struct {
	path string
	how  atomicfile.How

	mu     sync.Mutex // guards limits; held while they are written
	limits jobs.Limits
}

// loadOwner reads what the owner allowed before, and makes the changes of the
// configuration to it, which are then kept.
func loadOwner(path string, changes []string) (*owner, error) {
	o := &owner{path: path}
	b, err := os.ReadFile(path)
	if err == nil {
		if err = json.Unmarshal(b, &o.limits); err == nil {
			err = o.limits.Validate()
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("what the owner allows, %s: %w: repair it, or remove it and set it again", path, err)
	}
	if len(changes) == 0 {
		return o, nil
	}
	return o, o.change(changes, func(jobs.Limits) {})
}

// change makes all changes or none, calls then with the result, and returns
// when that is on disk.
func (o *owner) change(changes []string, then func(jobs.Limits)) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	next := o.limits
	for _, c := range changes {
		if err := next.Change(c); err != nil {
			return fmt.Errorf("%w: %w", api.ErrInvalid, err)
		}
	}
	b, err := json.MarshalIndent(next, "", "  ")
	if err != nil {
		return err
	}
	if err := o.how.Write(o.path, append(b, '\n')); err != nil {
		return fmt.Errorf("keep what the owner allows: %w", err)
	}
	o.limits = next
	then(next)
	return nil
}

func (o *owner) get() jobs.Limits {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.limits
}

// Limits returns what the owner allows.
func (s *service) Limits(context.Context) (jobs.Limits, error) { return s.n.owner.get(), nil }

// SetLimits changes what the owner allows.
func (s *service) SetLimits(_ context.Context, changes []string) (jobs.Limits, error) {
	if err := s.n.owner.change(changes, s.n.jobs.SetLimits); err != nil {
		return jobs.Limits{}, err
	}
	return s.n.owner.get(), nil
}

// Queue lists what waits here.
func (s *service) Queue(context.Context) ([]jobs.Waiting, error) { return s.n.jobs.Queue(), nil }

// What a node says of itself while it takes no new workers: its owner lets none
// in, or it cannot start any.
const (
	statePaused = "paused"
	stateBroken = "broken"
)

// state is how the node is, in one word; "" = as usual. why says more of one
// that is broken.
func (s *service) state() (state, why string) {
	switch why := s.n.jobs.Broken(); {
	case s.n.jobs.Drained().Draining:
		return stateDraining, ""
	case why != "":
		return stateBroken, why
	case s.n.owner.get().Paused:
		return statePaused, ""
	}
	return "", ""
}

// freeDisk returns how many bytes users may still write where the node keeps
// its workers' directories.
func (n *Node) freeDisk() (int64, error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(n.work, &st); err != nil {
		return 0, err
	}
	return int64(st.Bavail) * int64(st.Bsize), nil
}

// keepOutputs returns how many bytes of results are kept here.
func (n *Node) keepOutputs() int64 {
	var st syscall.Statfs_t
	if n.cfg.Owner.KeepOutputs > 0 || syscall.Statfs(n.cfg.State, &st) != nil {
		return n.cfg.Owner.KeepOutputs
	}
	return int64(st.Blocks) * int64(st.Bsize) / 10
}

// ownerPath is where it is kept what the owner allows.
func ownerPath(state string) string { return filepath.Join(state, "owner.json") }
