package launch

import (
	"errors"
	"slices"

	"zorilla/jobs/remover"
	"zorilla/jobs/sandbox"
)

// bring makes the directories of a number's commands be there.
func (l *launcher) bring(number int, c *Command) error {
	if l.inside == nil || l.brought[number] != nil {
		return nil
	}
	write, read := slices.DeleteFunc(slices.Clone(c.Write), l.isThere), slices.DeleteFunc(slices.Clone(c.Read), l.isThere)
	err := aside(func() error {
		return errors.Join(l.inside.Bring(l.outside, c.places(write), false), l.inside.Bring(l.outside, c.places(read), true))
	})
	if err == nil {
		l.brought[number] = slices.Concat(c.Write, c.Read)
	}
	return err
}

// isThere reports whether commands of a number have a directory.
func (l *launcher) isThere(dir string) bool {
	for _, dirs := range l.brought {
		if slices.Contains(dirs, dir) {
			return true
		}
	}
	return false
}

// refresh removes what earlier commands have left in memory, if no other one runs that may
// need it: it would count as this one's.
func (l *launcher) refresh(c *Command) {
	if !c.Fresh || l.inside == nil {
		return
	}
	dirs, ipc := l.inside.Left()
	l.mu.Lock()
	alone := len(l.runs) == 0 && len(l.sidecars) == 0
	l.mu.Unlock()
	if !alone || len(dirs) == 0 && !ipc {
		return
	}
	_ = aside(func() error {
		if ipc {
			sandbox.RemoveIPC()
		}
		for _, dir := range dirs {
			_ = remover.Empty(dir, nil) // what cannot be removed counts on
		}
		return nil
	})
}

// release takes the directories of a command, and its way to a control group, away.
func (l *launcher) release(c *Command) {
	number := c.Number
	l.joiners[number].Close()
	delete(l.joiners, number)
	if l.inside == nil {
		return
	}
	delete(l.brought, number)
	gone := slices.DeleteFunc(slices.Concat(c.Write, c.Read), l.isThere)
	_ = aside(func() error {
		l.inside.Drop(gone)
		return nil
	})
}
