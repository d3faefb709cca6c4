package origin

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/record"
	"zorilla/transfer"
)

// keepWhole is how many jobs that have ended an origin has in memory with all
// that is known of them, also what is in no journal: rounds and answers. The
// others are read when somebody asks.
const keepWhole = 500

// outputsOwner, inputsOwner and treeOwner name who pins what in the store: the
// files that a job made, the inputs of a job that has not ended, and inputs of
// jobs that have.
func outputsOwner(id jobs.ID) string        { return "job/" + string(id) }
func inputsOwner(id jobs.ID) string         { return "job-inputs/" + string(id) }
func treeOwner(inputs transfer.Hash) string { return "kept-inputs/" + inputs.String() }

// size is how many bytes of results the job has here.
func (j *job) size() int64 {
	return j.wrote() + j.Primary.Rec.Filed()
}

// wrote is how much its output and its input take.
func (j *job) wrote() int64 {
	out, _, _ := j.output.Spool.State()
	return out + j.stdin.Kept()
}

// settled files a job that has ended, and is on disk as such, with the size of
// what it wrote.
func (o *Jobs) settled(rec *record.Record, wrote int64) {
	p := record.PastOf(rec)
	p.Size = wrote + rec.Filed()
	inputs, size := rec.Spec.Inputs, int64(0)
	if t := o.archive.trees[inputs]; !inputs.IsZero() && (t == nil || !t.here) {
		tree, err := transfer.LoadManifest(o.store, inputs)
		if err != nil {
			inputs = transfer.Hash{}
		} else {
			size = tree.Size()
			o.store.Pin(treeOwner(inputs), append(tree.Chunks(), inputs)...)
		}
	}
	o.archive.add(time.Now(), p, inputs, size)
	o.store.Unpin(inputsOwner(rec.ID))
	o.dropTrees()
}

// dropTrees lets go of inputs that are only cache now.
func (o *Jobs) dropTrees() {
	for _, h := range o.archive.loose {
		if t := o.archive.trees[h]; t == nil || !t.here {
			o.store.Unpin(treeOwner(h))
		}
	}
	o.archive.loose = nil
}

// shed takes the jobs out of memory that ended first, beyond keepWhole, some at a time.
func (o *Jobs) shed() {
	if len(o.jobs)-len(o.core.Live.List) < keepWhole+keepWhole/8 {
		return
	}
	var ended []*job
	for _, j := range o.jobs {
		if j.filed && len(j.Steps) == 0 && len(j.Serving) == 0 {
			ended = append(ended, j)
		}
	}
	slices.SortFunc(ended, func(a, b *job) int {
		x, y := &a.Primary.Rec, &b.Primary.Rec
		return cmp.Or(x.Ended.Compare(y.Ended), cmp.Compare(x.ID, y.ID))
	})
	for _, j := range ended[:max(0, len(ended)-keepWhole)] {
		o.core.Drop(j.Primary.Rec.ID)
		delete(o.jobs, j.Primary.Rec.ID)
	}
}

// sweep forgets what is due.
func (o *Jobs) sweep() {
	was := o.archive.full
	forget, drop := o.archive.sweep(time.Now())
	o.dropTrees()
	if r := o.archive.results(); r.Full && !was {
		o.log.Warn().Int64("bytes", r.Bytes).Int64("limit", r.Limit).
			Msg("the results of jobs need more room than --keep-outputs allows: those that nobody has read are kept for a day all the same")
	}
	if len(forget)+len(drop) == 0 {
		return
	}
	list := append(o.forget(forget, false), o.forget(drop, true)...)
	o.log.Info().Int("results", len(forget)).Int("records", len(drop)).Msg("forgot jobs that ended long ago, or whose results had no room")
	o.loop.Go(func() { o.disk.eraseAll(list, func(error) {}) })
	o.loop.Notify()
}

// forget takes the results of jobs out of memory, or all of them, and returns
// what is left to do on disk. It runs in the loop.
func (o *Jobs) forget(rows []row, remove bool) (list []erasure) {
	now, findLast := time.Now(), false
	for _, r := range rows {
		e := erasure{id: r.id(o.self.ID), at: now, suffix: markForgotten}
		if o.jobs[e.id] != nil {
			o.core.Drop(e.id)
			delete(o.jobs, e.id)
		}
		o.archive.forget(now, r)
		if remove {
			e.suffix = markRemoved
			findLast = findLast || o.last == e.id
		}
		list = append(list, e)
	}
	if remove {
		o.archive.remove(rows)
	}
	if findLast {
		o.findLast()
	}
	o.dropTrees()
	return list
}

// findLast looks which job was submitted last of those that are left: of these, if none is in
// memory, the one that ended last.
func (o *Jobs) findLast() {
	o.last, o.lastStamp = "", 0
	if n := len(o.archive.order); n > 0 {
		o.sawLast(o.archive.order[n-1].id(o.self.ID), 0)
	}
	for id, p := range o.archive.near {
		o.sawLast(id, p.Stamp)
	}
	for id, j := range o.jobs {
		o.sawLast(id, j.Primary.Rec.Stamp)
	}
}

func (o *Jobs) sawLast(id jobs.ID, stamp jobs.Stamp) {
	if o.last == "" || o.lastStamp < stamp {
		o.last, o.lastStamp = id, stamp
	}
}

// Remove forgets a job of this origin that has ended, with its results. It
// returns when that outlives the node.
func (a *API) Remove(id jobs.ID) error {
	err := fmt.Errorf("job %s %w", id.Short(), jobs.ErrNotFound)
	done := make(chan error, 2)
	ok := a.own.loop.Call(func() {
		r, j := a.own.archive.find(id), a.own.jobs[id]
		switch {
		case r != nil:
			err = nil
			list := a.own.forget([]row{*r}, true)
			a.own.loop.Go(func() { a.own.disk.eraseAll(list, func(err error) { done <- err }) })
			a.own.loop.Notify()
		case j != nil:
			st, _ := a.own.view(j)
			err = fmt.Errorf("%w: job %s is %s: 'zorilla cancel %s' ends it", jobs.ErrRefused, id.Short(), st.State, id.Short())
		}
	})
	switch {
	case !ok:
		return jobs.ErrStopped
	case err != nil:
		return err
	}
	select {
	case err := <-done:
		return err
	case <-a.own.loop.Stopped.Done():
		return jobs.ErrStopped
	}
}
