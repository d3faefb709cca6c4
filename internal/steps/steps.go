// Package steps logs for tests what a program does to disks, processes and other nodes, in the
// order in which it does that. Their doubles write into one Log, and a test asks it for an order:
// that something was durable before another thing named it.
package steps

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Log is what was done, each step a line such as "sync blobs/ab" or "journal: started". Its
// methods may be called from any goroutine. The zero Log is empty.
type Log struct {
	mu   sync.Mutex
	list []string
}

// Did adds a step, made of words that Sprint would write.
func (l *Log) Did(words ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, strings.TrimSuffix(fmt.Sprintln(words...), "\n"))
}

// All returns the steps until now.
func (l *Log) All() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.list)
}

// Times returns how often a step was done.
func (l *Log) Times(step string) (n int) {
	for _, s := range l.All() {
		if s == step {
			n++
		}
	}
	return n
}

// InOrder fails the test unless each of the steps was done, and none of them, not even once, before
// the step before it was done for the first time.
func (l *Log) InOrder(t testing.TB, steps ...string) {
	t.Helper()
	all := l.All()
	for i, step := range steps {
		at := slices.Index(all, step)
		switch {
		case at < 0:
			t.Errorf("nobody did %q; done was\n%s", step, strings.Join(all, "\n"))
			return
		case i > 0 && at < slices.Index(all, steps[i-1]):
			t.Errorf("%q was done before %q; done was\n%s", step, steps[i-1], strings.Join(all, "\n"))
			return
		}
	}
}
