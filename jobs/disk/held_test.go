package disk

import (
	"path/filepath"
	"testing"
	"time"
)

// What is held counts with what has a name, when it is sure that it is not the same.
func TestHeld(t *testing.T) {
	type look struct {
		held  []int64 // by one look after the other
		slow  bool    // what began before the latest look at the directories comes first
		of    int
		write bool // something that has a name
		over  bool
	}
	const mib = 1 << 20
	for name, looks := range map[string][]look{
		"little":                        {{held: []int64{mib}}, {held: []int64{2 * mib}}},
		"too much":                      {{held: []int64{8 * mib, 8 * mib}, over: true}},
		"together":                      {{held: []int64{3 * mib}}, {held: []int64{3 * mib, 3 * mib}, write: true, over: true}},
		"it got a name meanwhile":       {{held: []int64{3 * mib, 0}, write: true}},
		"slowly":                        {{held: []int64{8 * mib, 8 * mib}, slow: true}, {held: []int64{8 * mib}, over: true}},
		"slowly, and closed":            {{held: []int64{8 * mib, 8 * mib}, slow: true}, {held: []int64{0}}},
		"slowly, of a task that ended":  {{held: []int64{8 * mib, 8 * mib}, slow: true}, {held: []int64{mib}, of: 1}},
		"slowly, of the task that came": {{held: []int64{8 * mib, 8 * mib}, slow: true}, {held: []int64{8 * mib, 8 * mib}, of: 1, over: true}},
	} {
		dir := t.TempDir()
		g, begin := NewGuard(4*mib, dir), time.Now()
		for i, l := range looks {
			if l.write {
				write(t, filepath.Join(dir, "file"), 2*mib)
				grown(t, dir, func() {})
			}
			g.Held = func(bool) (int64, time.Time) {
				used, at := l.held[0], time.Now()
				if l.held = l.held[1:]; l.slow {
					at = begin
				}
				return used, at
			}
			if _, over := g.look(l.of); over != l.over {
				t.Errorf("%s, look %d: too much: %v", name, i, over)
			}
			if len(l.held) > 0 {
				t.Errorf("%s, look %d: nobody has looked at %v", name, i, l.held)
			}
		}
	}
}

// Who is told what all files take, does not look at them, as long as it is told.
func TestTold(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "file"), 2<<20)
	grown(t, dir, func() {})
	g := NewGuard(1<<20, dir)
	for _, told := range []struct {
		used int64
		ok   bool
		over bool
	}{{1 << 20, true, false}, {1<<20 + 1, true, true}, {0, false, true}, {0, true, false}} {
		g.All = func() (int64, bool) { return told.used, told.ok }
		if _, over := g.look(0); over != told.over {
			t.Errorf("%+v: too much: %v", told, over)
		}
	}
}

// Of what several share each counts its part.
func TestShared(t *testing.T) {
	dir, shared := t.TempDir(), t.TempDir()
	write(t, filepath.Join(dir, "file"), 1<<20)
	write(t, filepath.Join(shared, "file"), 9<<20)
	grown(t, dir, func() {})
	grown(t, shared, func() {})
	for _, c := range []struct {
		limit   int64
		sharers int
		over    bool
	}{{5 << 20, 1, true}, {5 << 20, 3, false}, {3 << 20, 3, true}, {500 << 10, 100, true}, {1 << 62, 2, false}} {
		g := NewGuard(c.limit, dir)
		g.Shared, g.Sharers = shared, c.sharers
		if used, over := g.look(0); over != c.over {
			t.Errorf("%+v: %d, too much: %v", c, used, over)
		}
	}
}
