package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"zorilla/internal/seeds"
)

// looseMedium is a disk of a machine that does not end.
type looseMedium struct{ realMedium }

func (looseMedium) sync(*os.File) error { return nil }
func (looseMedium) loose() bool         { return true }

func (looseMedium) create(path string, size int) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	return f, f.Truncate(int64(size))
}

func openLoose(path string) (*File, error) { return open(path, looseMedium{}) }

// badMedium is a disk that fails, or whose machine ends, at any step.
type badMedium struct {
	looseMedium
	step func(what string) error // before a step, and in the middle of a write
	// synced is what is on the disk of each log whatever happens, and removed what
	// a power cut may bring back.
	synced, removed map[string][]byte
}

func newBadMedium() *badMedium {
	return &badMedium{step: func(string) error { return nil }, synced: map[string][]byte{}, removed: map[string][]byte{}}
}

func (m *badMedium) create(path string, size int) (*os.File, error) {
	if err := m.step("create"); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	m.synced[path] = make([]byte, size)
	for _, part := range []int{0, size / 3, size} {
		if err := f.Truncate(int64(part)); err != nil {
			return nil, err
		}
		if err := m.step("fill"); err != nil {
			f.Close()
			return nil, errors.Join(err, os.Remove(path))
		}
	}
	return f, nil
}

func (m *badMedium) write(f *os.File, b []byte, at int64) error {
	for _, part := range []int{0, 1, len(b) / 2, len(b) - 1, len(b)} {
		if _, err := f.WriteAt(b[:part], at); err != nil {
			return err
		}
		if err := m.step("write"); err != nil {
			return err
		}
	}
	return nil
}

func (m *badMedium) sync(f *os.File) error {
	if err := m.step("sync"); err != nil {
		return err
	}
	b, err := os.ReadFile(f.Name())
	m.synced[f.Name()] = b
	return errors.Join(err, m.step("synced"))
}

func (m *badMedium) remove(path string) error {
	if err := m.step("remove"); err != nil {
		return err
	}
	b, err := os.ReadFile(path)
	if err == nil {
		m.removed[path] = b
		delete(m.synced, path)
		err = os.Remove(path)
	}
	return errors.Join(err, m.step("removed"))
}

// killed copies the journal as the next process finds it.
func (m *badMedium) killed(t *testing.T, path string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(filepath.Dir(path))); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(to, filepath.Base(path))
}

// cut copies the journal as it may be after a power cut: of what was not synced any
// sector may be there or not, and what was removed may be back.
func (m *badMedium) cut(t *testing.T, path string, rnd *rand.Rand) string {
	t.Helper()
	to := m.killed(t, path)
	put := func(name string, b []byte) {
		if err := os.WriteFile(filepath.Join(filepath.Dir(to), filepath.Base(name)), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.synced)) {
		now, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		b := slices.Clone(m.synced[name])
		for from := 0; from < min(len(now), len(b)); from += sector {
			if to := min(from+sector, len(now), len(b)); rnd.IntN(2) == 0 {
				copy(b[from:to], now[from:to])
			}
		}
		put(name, b)
	}
	for _, name := range slices.Sorted(maps.Keys(m.removed)) {
		if rnd.IntN(3) == 0 {
			put(name, m.removed[name])
		}
	}
	return to
}

// model is what a journal must hold: what was written, and perhaps one of those
// that failed since, or that was being written.
type model struct {
	sure    map[string][]string
	pending [][]op
}

func (m *model) try(f *File, ops []op) error {
	m.pending = append(m.pending, ops)
	err := f.commit(ops)
	if err == nil {
		m.written(ops)
	}
	return err
}

func (m *model) states() (all []string) {
	text := func(state map[string][]string) string {
		var lines []string
		for _, key := range slices.Sorted(maps.Keys(state)) {
			lines = append(lines, key+": "+strings.Join(state[key], " "))
		}
		return strings.Join(lines, "\n")
	}
	all = append(all, text(m.sure))
	for _, ops := range m.pending {
		all = append(all, text(m.with(ops)))
	}
	return all
}

// with is the state after operations.
func (m *model) with(ops []op) map[string][]string {
	state := maps.Clone(m.sure)
	for _, o := range ops {
		if o.remove != "" {
			delete(state, o.remove)
		}
		for _, e := range o.entries {
			state[e.Key] = append(slices.Clone(state[e.Key]), string(e.Data))
		}
	}
	return state
}

func (m *model) written(ops []op) { m.sure, m.pending = m.with(ops), nil }

// found opens a copy of the journal, which must be one of the states, and takes it.
func (m *model) found(t *testing.T, what, path string, medium medium, mayTear bool) *File {
	t.Helper()
	f, err := open(path, medium)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	for _, line := range f.Lost() {
		if !mayTear || !strings.Contains(line, "was not complete") || !strings.Contains(line, path) {
			t.Errorf("%s: told %q", what, line)
		}
	}
	states := m.states()
	got := content(t, f)
	switch i := slices.Index(states, got); {
	case i < 0:
		t.Fatalf("%s: the journal holds\n%s\nwant\n%s", what, brief(got), brief(strings.Join(states, "\nor\n")))
	case i > 0:
		m.written(m.pending[i-1])
	}
	m.pending = nil
	return f
}

// brief leaves out what only takes room.
func brief(state string) string { return strings.ReplaceAll(state, "x", "") }

// batch makes operations on a few keys.
func batch(rnd *rand.Rand, n int) (ops []op) {
	for range 1 + rnd.IntN(3) {
		key := fmt.Sprintf("k%d", rnd.IntN(5))
		var entries []Entry
		for i := range 1 + rnd.IntN(3) {
			entries = append(entries, entry(key, fmt.Sprint(n, ".", i, strings.Repeat("x", rnd.IntN(1<<rnd.IntN(12))))))
		}
		switch rnd.IntN(8) {
		case 0:
			ops = append(ops, op{remove: key})
		case 1:
			ops = append(ops, op{remove: key, entries: entries[:1]})
		default:
			ops = append(ops, op{entries: append(entries, entry("all", fmt.Sprint(n)))})
		}
	}
	return ops
}

// openSmall opens a journal whose logs are small. Nothing runs beside its caller.
func openSmall(t *testing.T, path string, m medium) *File {
	t.Helper()
	f, err := open(path, m)
	if err != nil {
		t.Fatal(err)
	}
	f.logSize = 4096
	return f
}

// A process that ends, or a machine, at any step of writing, of changing logs and of
// bringing them into the table, leaves all that was written, and no part of what was not.
func TestEndAtEveryStep(t *testing.T) {
	rnd := rand.New(rand.NewPCG(seeds.One(t), 2))
	path := filepath.Join(t.TempDir(), "journal")
	medium := newBadMedium()
	now := model{sure: map[string][]string{}}
	steps := map[string]int{}
	check := func(what string) error {
		steps[what]++
		for how, copied := range map[string]string{"killed": medium.killed(t, path), "cut": medium.cut(t, path, rnd)} {
			m := now
			f := m.found(t, fmt.Sprintf("%s at %s %d", how, what, steps[what]), copied, looseMedium{}, true)
			if left, _ := filepath.Glob(copied + ".log-*"); len(left) != 0 || f.Close() != nil {
				t.Errorf("%s at %s: logs are left: %q", how, what, left)
			}
			os.RemoveAll(filepath.Dir(copied))
		}
		return nil
	}
	f := openSmall(t, path, medium)
	medium.step = check
	for n := range 24 {
		if err := now.try(f, batch(rnd, n)); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(f.applyLogs(1), f.makeSpare()); err != nil && rnd.IntN(3) == 0 {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	check("end")
	for _, what := range []string{"create", "fill", "write", "sync", "synced", "remove", "removed"} {
		if steps[what] < 3 {
			t.Errorf("%d times %s: the test does not see it", steps[what], what)
		}
	}
}

// Whatever fails, as often as it likes, with machines that end in between: what was
// written is there, and of what failed nothing, unless it was the last thing.
func TestFailuresAtRandom(t *testing.T) {
	seeds.Random(t, func(t *testing.T, seed uint64) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		path := filepath.Join(t.TempDir(), "journal")
		now := model{sure: map[string][]string{}}
		failed := 0
		for life := range 8 {
			medium := newBadMedium()
			f := now.found(t, fmt.Sprintf("life %d", life), path, medium, true)
			f.logSize = 4096
			chance := rnd.IntN(3) * 8
			medium.step = func(what string) error {
				if rnd.IntN(100) >= chance {
					return nil
				}
				return fmt.Errorf("%s: %w", what, []error{syscall.EIO, syscall.ENOSPC}[rnd.IntN(2)])
			}
			for n := range rnd.IntN(40) {
				if now.try(f, batch(rnd, n)) != nil {
					failed++
				}
				if n%8 == 0 {
					if got := content(t, f); got != now.states()[0] {
						t.Fatalf("life %d, step %d: the journal holds\n%s\nwant\n%s", life, n, brief(got), brief(now.states()[0]))
					}
				}
				if rnd.IntN(3) == 0 {
					_ = errors.Join(f.applyLogs(1), f.makeSpare())
				}
				if f.tails.waiting() == maxSealed && len(f.freed) == 0 {
					f.freed <- syscall.EIO // there is no keeper that says so
				}
			}
			next := medium.cut(t, path, rnd)
			if rnd.IntN(3) == 0 {
				_ = f.Close()
				next = medium.killed(t, path)
			}
			f.db.Close()
			path = next
		}
		if failed == 0 {
			t.Error("nothing failed")
		}
	})
}
