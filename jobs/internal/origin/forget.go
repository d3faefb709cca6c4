package origin

import (
	"cmp"
	"slices"
	"time"

	"zorilla/jobs/internal/record"
	"zorilla/transfer"
)

// keepWhole is how many jobs that have ended an origin has in memory with all
// that is known of them, also what is in no journal: rounds and answers. The
// others are read when somebody asks.
const keepWhole = 500

// settled files a job that has ended, and is on disk as such, with the size of
// what it wrote.
func (t *table) settled(rec *record.Record, wrote int64) {
	p := record.PastOf(rec)
	p.Size = wrote + rec.Filed()
	inputs, size := rec.Spec.Inputs, int64(0)
	if k := t.archive.trees[inputs]; !inputs.IsZero() && (k == nil || !k.here) {
		tree, err := transfer.LoadManifest(t.store, inputs)
		if err != nil {
			inputs = transfer.Hash{}
		} else {
			size = tree.Size()
			t.store.Pin(treeOwner(inputs), append(tree.Chunks(), inputs)...)
		}
	}
	t.archive.add(time.Now(), p, inputs, size)
	t.store.Unpin(inputsOwner(rec.ID))
	t.keys.forget(rec.Spec.Key, rec.ID) // the archive has it
	t.dropTrees()
}

// dropTrees lets go of inputs that are only cache now.
func (t *table) dropTrees() {
	for _, h := range t.archive.loose {
		if k := t.archive.trees[h]; k == nil || !k.here {
			t.store.Unpin(treeOwner(h))
		}
	}
	t.archive.loose = nil
}

// shed takes the jobs out of memory that ended first, beyond keepWhole, some at a time.
func (t *table) shed() {
	if len(t.jobs)-len(t.core.Live.List) < keepWhole+keepWhole/8 {
		return
	}
	var ended []*job
	for _, j := range t.jobs {
		if j.filed && len(j.Steps) == 0 && len(j.Serving) == 0 {
			ended = append(ended, j)
		}
	}
	slices.SortFunc(ended, func(a, b *job) int {
		x, y := &a.Primary.Rec, &b.Primary.Rec
		return cmp.Or(x.Ended.Compare(y.Ended), cmp.Compare(x.ID, y.ID))
	})
	for _, j := range ended[:max(0, len(ended)-keepWhole)] {
		t.core.Drop(j.Primary.Rec.ID)
		t.drop(j)
	}
}

// sweep forgets what is due.
func (t *table) sweep() {
	was := t.archive.full
	forget, drop := t.archive.sweep(time.Now())
	t.dropTrees()
	if r := t.archive.results(); r.Full && !was {
		t.log.Warn().Int64("bytes", r.Bytes).Int64("limit", r.Limit).
			Msg("the results of jobs need more room than --keep-outputs allows: those that nobody has read are kept for a day all the same")
	}
	if len(forget)+len(drop) == 0 {
		return
	}
	list := append(t.forget(forget, false), t.forget(drop, true)...)
	t.log.Info().Int("results", len(forget)).Int("records", len(drop)).Msg("forgot jobs that ended long ago, or whose results had no room")
	t.erase(list, func(error) {})
}

// forget takes the results of jobs out of memory, or all of them, and returns
// what is left to do on disk.
func (t *table) forget(rows []row, remove bool) (list []erasure) {
	now, findLast := time.Now(), false
	for _, r := range rows {
		e := erasure{id: r.id(t.self), at: now, suffix: markForgotten}
		if j := t.jobs[e.id]; j != nil {
			t.core.Drop(e.id)
			t.drop(j)
		}
		t.archive.forget(now, r)
		if remove {
			e.suffix = markRemoved
			findLast = findLast || t.last.id == e.id
		}
		list = append(list, e)
	}
	if remove {
		t.archive.remove(rows)
	}
	if findLast {
		t.findLast()
	}
	t.dropTrees()
	return list
}
