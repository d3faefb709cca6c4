package origin

import (
	"fmt"
	"slices"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/internal/record"
	"zorilla/transfer"
)

// keepWhole is how many jobs that have ended an origin has in memory with all
// that is known of them, also what is in no journal: rounds and answers. The
// others are read when somebody asks.
const keepWhole = 1000

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
	if t := o.archive.trees[inputs]; !inputs.IsZero() && (t == nil || !t.Here) {
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
		if t := o.archive.trees[h]; t == nil || !t.Here {
			o.store.Unpin(treeOwner(h))
		}
	}
	o.archive.loose = nil
}

// shed takes the jobs out of memory that ended first, beyond keepWhole.
func (o *Jobs) shed() {
	var ended []*record.Past
	for id, j := range o.jobs {
		if p := o.archive.all[id]; p != nil && len(j.Steps) == 0 && len(j.Serving) == 0 {
			ended = append(ended, p)
		}
	}
	if len(ended) <= keepWhole {
		return
	}
	slices.SortFunc(ended, byEnd)
	for _, p := range ended[:len(ended)-keepWhole] {
		o.core.Drop(p.ID)
		delete(o.jobs, p.ID)
	}
}

// sweep forgets what is due.
func (o *Jobs) sweep() {
	was := o.archive.full
	forget, drop := o.archive.sweep(time.Now())
	o.dropTrees()
	if r := o.archive.results(); r.Full && !was {
		o.log.Warn().Int64("bytes", r.Bytes).Int64("limit", r.Limit).Msg("the results of jobs need more room than --keep-outputs allows: those that nobody has read are kept for a day all the same")
	}
	var list []erasure
	for _, p := range forget {
		list = append(list, o.forget(p, false))
	}
	for _, p := range drop {
		list = append(list, o.forget(p, true))
	}
	if len(list) == 0 {
		return
	}
	o.log.Info().Int("results", len(forget)).Int("records", len(drop)).Msg("forgot jobs that ended long ago, or whose results had no room")
	o.loop.Go(func() { o.disk.eraseAll(list, func(error) {}) })
	o.loop.Notify()
}

// forget takes the results of a job out of memory, or all of it, and returns
// what is left to do on disk. It runs in the loop.
func (o *Jobs) forget(p *record.Past, remove bool) erasure {
	e := erasure{id: p.ID, suffix: markForgotten}
	if o.jobs[p.ID] != nil {
		o.core.Drop(p.ID)
		delete(o.jobs, p.ID)
	}
	o.archive.forget(time.Now(), p)
	if remove {
		o.archive.remove(p)
		o.keys.forget(p.Key, p.ID)
		e.suffix = markRemoved
		if o.last == p.ID {
			o.findLast()
		}
	} else {
		e.record = o.recordOf(p)
	}
	o.dropTrees()
	return e
}

// recordOf is what the journal is to say of a job whose results are forgotten.
func (o *Jobs) recordOf(p *record.Past) []byte {
	whole := *p
	if k, ok := o.keys[p.Key]; ok && k.id == p.ID {
		whole.Sum = k.sum[:]
	}
	return codec.MustMarshal(record.Event{Kind: record.Forgotten, At: time.Now(), Past: &whole})
}

// findLast looks which job was submitted last of those that are left.
func (o *Jobs) findLast() {
	o.last, o.lastStamp = "", 0
	for id, p := range o.archive.all {
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
		p, j := a.own.archive.all[id], a.own.jobs[id]
		switch {
		case p != nil:
			err = nil
			e := a.own.forget(p, true)
			a.own.loop.Go(func() { a.own.disk.eraseAll([]erasure{e}, func(err error) { done <- err }) })
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
