package keep

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"zorilla/jobs/internal/wire"
	"zorilla/transfer"
)

// A node that is killed at any step has, when it is started again, all that it has said to keep, and of what
// it has not yet said all or nothing.
func TestKeeperIsKilledAtEveryStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t)
		first := m.keep(0, 1, "first")
		next := m.made(0, 2, "next")
		var lives []string
		kill := func() {
			dir := t.TempDir()
			if err := os.CopyFS(filepath.Join(dir, "life"), os.DirFS(m.dir)); err != nil {
				t.Fatal(err)
			}
			lives = append(lives, filepath.Join(dir, "life"))
		}
		m.puts = kill
		m.keeper.cfg.Store = killing{m.store, kill}
		if err := m.keeper.Keep(t.Context(), time.Now(), other, &wire.Keep{Job: job, New: next}); err != nil {
			t.Fatal(err)
		}
		said := len(lives)
		kill()
		if err := m.keeper.Keep(t.Context(), time.Now(), other, &wire.Keep{Job: job, Needed: []wire.Needed{{Rank: 0, Oldest: 2}}}); err != nil {
			t.Fatal(err)
		}
		kill()
		if said < 5 {
			t.Fatalf("there were only %d steps", said)
		}
		for i, dir := range lives {
			m := &machine{t: t, dir: dir, limit: 1 << 20, source: m.source}
			m.start()
			switch what := fmt.Sprintf("killed at step %d", i); {
			case i < said:
				m.want(what, 1, first, next)
			case m.has(first):
				m.want(what, 2, first, next)
			default:
				m.want(what, 1, next, first)
			}
			if err := m.keeper.Keep(t.Context(), time.Now(), other, &wire.Keep{Job: job, New: next}); err != nil || !m.has(next) {
				t.Errorf("killed at step %d, and asked again: %v", i, err)
			}
		}
	})
}

// killing is a store whose node is killed before and after what it does.
type killing struct {
	transfer.PinStore
	kill func()
}

func (s killing) Sync(hashes ...transfer.Hash) error {
	s.kill()
	defer s.kill()
	return s.PinStore.Sync(hashes...)
}

func (s killing) Discard(owner string) {
	s.kill()
	defer s.kill()
	s.PinStore.Discard(owner)
}

// A checkpoint is durable before its file says that it is here.
func TestKeeperMakesBlobsDurableFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t)
		bad := errors.New("its disk does not write")
		m.keeper.cfg.Store = unsynced{m.store, bad}
		a := m.made(0, 1, "a")
		if err := m.keeper.Keep(t.Context(), time.Now(), other, &wire.Keep{Job: job, New: a}); !errors.Is(err, bad) {
			t.Errorf("it keeps what is not durable: %v", err)
		}
		m.want("not durable", 0, a)
		m.start()
		m.want("not durable, after a start", 0, a)
	})
}

type unsynced struct {
	transfer.PinStore
	err error
}

func (s unsynced) Sync(...transfer.Hash) error { return s.err }
