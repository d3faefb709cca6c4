package executor

import (
	"path/filepath"
	"testing"

	"github.com/rs/zerolog"

	"zorilla/jobs"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/loop"
	"zorilla/jobs/internal/participant"
	"zorilla/jobs/internal/wire/wiretest"
	"zorilla/jobs/process"
	"zorilla/transfer"
	"zorilla/vicinity"
)

// What a worker of before began with stays in the store, which makes room as soon as
// the node works again.
func TestInputsOfAdoptedWorkersAreKept(t *testing.T) {
	store := transfer.NewMemStore(2 * 4096) // what two small blobs take
	data := []byte("sixty bytes of input, which would go for others, but for this")
	chunk := transfer.HashOf(data)
	if err := store.Put(chunk, data); err != nil {
		t.Fatal(err)
	}
	tree, err := transfer.SaveManifest(store, transfer.Manifest{Entries: []transfer.Entry{{Path: "in", Size: int64(len(data)), Chunks: []transfer.Hash{chunk}}}})
	if err != nil {
		t.Fatal(err)
	}
	ra := wiretest.RA(0, 1)
	work, self := t.TempDir(), jobtest.Node(2)
	root := filepath.Join(work, participant.RootName(wiretest.Job, ra))
	if err := process.MakeRoot(root, string(self)); err != nil {
		t.Fatal(err)
	}
	claim := participant.ClaimRecord{Version: 2, Job: wiretest.Job, RankAttempt: ra, Since: jobtest.Start, At: jobtest.Start,
		Spec: jobs.Spec{Args: []string{"prog"}, Min: 1, Max: 1, Slots: 1, Inputs: tree}}
	if err := claim.Write(root); err != nil {
		t.Fatal(err)
	}
	x := New(Config{Self: vicinity.Member{ID: self}, Workers: Workers{Dir: work}, Store: store, Log: zerolog.Nop()}, loop.New(zerolog.Nop()), &participant.Participant{})
	var adopted []participant.ClaimRecord
	if err := x.Adopt(func(c participant.ClaimRecord) { adopted = append(adopted, c) }); err != nil || len(adopted) != 1 || adopted[0].Job != wiretest.Job {
		t.Fatalf("adopted %+v, %v", adopted, err)
	}
	store.StartEviction()
	other := make([]byte, 100)
	if err := store.Put(transfer.HashOf(other), other); err != nil {
		t.Fatal(err)
	}
	if !store.Has(chunk) || !store.Has(tree) {
		t.Errorf("its input is here: %v, the list of them: %v", store.Has(chunk), store.Has(tree))
	}
}
