package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

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
