package launch

import (
	"errors"
	"slices"

	"zorilla/jobs/sandbox"
	"zorilla/jobs/trees"
)

// bring makes the directories of a command be there.
func (l *launcher) bring(c *Command) error {
	if l.inside == nil || len(c.Write) > 0 && l.brought[c.Write[0]] {
		return nil
	}
	err := aside(func() error {
		return errors.Join(l.inside.Bring(l.outside, c.places(c.Write), false), l.inside.Bring(l.outside, c.places(c.Read), true))
	})
	if err == nil && len(c.Write) > 0 {
		l.brought[c.Write[0]] = true
	}
	return err
}

// refresh removes what earlier commands have left in memory, if no other one runs that may
// need it: it would count as this one's.
func (l *launcher) refresh(c *Command) {
	if !c.Fresh || l.inside == nil {
		return
	}
	dirs, ipc := l.inside.Left()
	l.mu.Lock()
	alone := len(l.runs) == 0 && len(l.also) == 0
	l.mu.Unlock()
	if !alone || len(dirs) == 0 && !ipc {
		return
	}
	_ = aside(func() error {
		if ipc {
			sandbox.RemoveIPC()
		}
		for _, dir := range dirs {
			_ = trees.Empty(dir, nil) // what cannot be removed counts on
		}
		return nil
	})
}

// release takes the directories of a command, and its way to a control group, away.
func (l *launcher) release(number int, c *Command) {
	l.doors[number].Close()
	delete(l.doors, number)
	if l.inside == nil || len(c.Write) == 0 {
		return
	}
	delete(l.brought, c.Write[0])
	_ = aside(func() error {
		l.inside.Drop(slices.Concat(c.Write, c.Read))
		return nil
	})
}
