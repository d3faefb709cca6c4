package executor

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/wire"
	"zorilla/transfer"
)

// Inputs that a worker has changed in many places, though they look as they were, are fetched
// again at once for the next ones, which get copies.
func TestInputsThatAWorkerHasChanged(t *testing.T) {
	const chunks = 40
	src, dir := t.TempDir(), t.TempDir()
	data := make([]byte, chunks*transfer.ChunkSize)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(data) // never fails
	from, store := transfer.NewMemStore(0), transfer.NewDirStore(t.TempDir(), 0)
	if err := errors.Join(store.Open(), os.WriteFile(filepath.Join(src, "large"), data, 0o600)); err != nil {
		t.Fatal(err)
	}
	tree, err := transfer.Ingest(t.Context(), from, []transfer.Input{{Path: src, Name: "."}})
	if err != nil {
		t.Fatal(err)
	}
	in := &inputs{ctx: t.Context(), tree: tree}
	in.again = func(func(transfer.Stats)) (transfer.Manifest, error) {
		defer store.Expect(&tree, false)()
		for _, c := range tree.DistinctChunks() {
			if store.Has(c.Hash) {
				continue
			}
			b, err := from.Get(c.Hash, nil)
			if err = errors.Join(err, store.Put(c.Hash, b)); err != nil {
				return tree, err
			}
		}
		return tree, nil
	}
	first := filepath.Join(dir, "first")
	if err := in.lay(store, filepath.Join(first, workDir), transfer.How{Give: true}); err != nil {
		t.Fatal(err)
	}
	large := filepath.Join(first, workDir, "large")
	info, err := os.Stat(large)
	if err == nil {
		err = errors.Join(os.WriteFile(large, make([]byte, len(data)), 0o600), os.Chtimes(large, time.Time{}, info.ModTime()))
	}
	if err != nil {
		t.Fatal(err)
	}
	takeBack(store, first)
	for _, name := range []string{"second", "third"} {
		if err := in.lay(store, filepath.Join(dir, name), transfer.How{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if b, err := os.ReadFile(filepath.Join(dir, name, "large")); err != nil || string(b) != string(data) {
			t.Errorf("%s has %d bytes, or others (%v)", name, len(b), err)
		}
	}
}

// While inputs are written it is told how far that is, small files and large ones, and of workers
// that are prepared alone.
func TestLayingOutIsTold(t *testing.T) {
	src, dir := t.TempDir(), t.TempDir()
	for name, size := range map[string]int{"large": 3 * transfer.ChunkSize, "a": 1, "b": 2, "c": 3} {
		data := make([]byte, size)
		for i := range data {
			data[i] = byte(len(name)*i + i>>16 + 1)
		}
		if err := os.WriteFile(filepath.Join(src, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	store := transfer.NewMemStore(1 << 30)
	tree, err := transfer.Ingest(t.Context(), store, []transfer.Input{{Path: src, Name: "."}})
	if err != nil {
		t.Fatal(err)
	}
	in, ra := &inputs{ctx: t.Context(), tree: tree}, jobs.RankAttempt{Rank: 1, Attempt: 1}
	if err := in.lay(store, filepath.Join(dir, workDir), transfer.How{Steps: in.steps(ra)}); err != nil {
		t.Fatal(err)
	}
	list := []wire.WorkerReport{{RankAttempt: ra, State: jobs.WorkerPreparing}, {RankAttempt: ra, State: jobs.WorkerReady}, {State: jobs.WorkerPreparing}}
	in.came.Add(10)
	if in.addProgress(list); list[0].Laid != 16 || list[1].Laid != 0 || list[2].Laid != 10 {
		t.Errorf("told of %d, %d and %d steps, want 16, none and 10: ten that came, three chunks and three files", list[0].Laid, list[1].Laid, list[2].Laid)
	}
}
