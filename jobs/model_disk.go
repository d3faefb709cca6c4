package jobs

import (
	"slices"
	"time"

	"zorilla/jobs/process"
)

// modelDisk is what a Model has on its disk, and the processes of its machine: all
// that outlives it.
type modelDisk struct {
	journal []modelEntry
	jobs    []ID // that were submitted here, in that order
	workers []*modelWorker
	outputs map[ID]map[RankAttempt]*modelOutput // of jobs that were submitted here
}

// modelEntry is one event in the journal of a Model.
type modelEntry struct {
	job ID
	ev  event
}

// modelWrite is events on their way to the journal.
type modelWrite struct {
	doRecord
	due time.Time // when they are durable
}

// modelOutput is what an origin has of the output of a worker.
type modelOutput struct {
	data []byte
	safe int // bytes that are durable
}

// modelWorker is the directory and the process of a worker.
type modelWorker struct {
	workerID
	fate   Fate
	claim  *claimRecord // nil = it is not written down that it is here
	synced bool         // that is durable
	noted  bool         // that its origin wanted its process to end
	told   int64        // epoch of the table that it knows
	files  bool         // its output files are stored

	// Of the process:
	began  time.Time
	ends   time.Time // by itself, or as it was told; zero = not so far
	exit   process.Exit
	wrote  int // when it has ended
	freed  int // bytes of output that are not kept any more
	over   bool
	failed bool // with its machine
}

func newModelDisk() modelDisk { return modelDisk{outputs: map[ID]map[RankAttempt]*modelOutput{}} }

func (d *modelDisk) worker(id workerID) *modelWorker {
	i := slices.IndexFunc(d.workers, func(k *modelWorker) bool { return k.workerID == id })
	if i < 0 {
		return nil
	}
	return d.workers[i]
}

// OutputByte is what a worker of a Model writes at an offset.
func OutputByte(job ID, ra RankAttempt, at int) byte {
	return byte(int(job[0])*7 + int(job[3]) + ra.Rank*31 + ra.Attempt*17 + at)
}

// written returns how many bytes a process has written by now.
func (k *modelWorker) written(now time.Time) int {
	switch {
	case k.over:
		return k.wrote
	case k.began.IsZero():
		return 0
	case k.fate.Run <= 0:
		return k.fate.Output
	}
	return min(k.fate.Output, max(0, int(int64(k.fate.Output)*int64(now.Sub(k.began))/int64(k.fate.Run))))
}

// modelReport bounds the output in one report, so that it takes several.
const modelReport = 256

// fill adds output to a report.
func (d *modelDisk) fill(now time.Time, e *doReport) *Report {
	rep, room := e.report, modelReport
	for _, r := range e.readings {
		w := &rep.Workers[r.worker]
		k := d.worker(workerID{rep.Job, w.RankAttempt})
		if k == nil || k.began.IsZero() {
			continue
		}
		wrote := k.written(now)
		w.Stdout = int64(wrote)
		if from, n := int(r.from.stdout), min(wrote-int(r.from.stdout), room); !r.skip && n > 0 && from >= k.freed {
			data := make([]byte, n)
			for i := range data {
				data[i] = OutputByte(rep.Job, w.RankAttempt, from+i)
			}
			room -= n
			rep.Output = append(rep.Output, Output{Rank: w.Rank, Attempt: w.Attempt, Stream: process.Stdout, Offset: int64(from), Data: data})
		}
	}
	return &rep
}

// more reports whether there is output that a report had no room for.
func (d *modelDisk) more(now time.Time, rep *Report) bool {
	n := 0
	for _, o := range rep.Output {
		n += len(o.Data)
	}
	return n == modelReport
}

// store keeps the output of workers that still count, and reports whether it must be
// durable before the report is recorded.
func (d *modelDisk) store(rep *Report, owned map[RankAttempt]bool) (ended bool) {
	have := d.outputs[rep.Job]
	if have == nil {
		have = map[RankAttempt]*modelOutput{}
		d.outputs[rep.Job] = have
	}
	for _, o := range rep.Output {
		ra := RankAttempt{o.Rank, o.Attempt}
		if !owned[ra] {
			continue
		}
		if have[ra] == nil {
			have[ra] = &modelOutput{}
		}
		if at := len(have[ra].data); int(o.Offset) <= at && int(o.Offset)+len(o.Data) > at {
			have[ra].data = append(have[ra].data, o.Data[at-int(o.Offset):]...)
		}
	}
	return slices.ContainsFunc(rep.Workers, func(w WorkerReport) bool { return w.State == WorkerEnded && owned[w.RankAttempt] })
}

func (d *modelDisk) syncOutput(job ID) {
	for _, o := range d.outputs[job] {
		o.safe = len(o.data)
	}
}

// received returns how much of the output of a report's workers is here.
func (d *modelDisk) received(rep *Report) map[RankAttempt]received {
	have := make(map[RankAttempt]received, len(rep.Workers))
	for _, w := range rep.Workers {
		have[w.RankAttempt] = d.has(rep.Job, w.RankAttempt)
	}
	return have
}

func (d *modelDisk) has(job ID, ra RankAttempt) received {
	if o := d.outputs[job][ra]; o != nil {
		return received{stdout: int64(len(o.data))}
	}
	return received{}
}

// gathered reports whether the output files of a worker can be fetched.
func (d *modelDisk) gathered(id workerID) bool {
	k := d.worker(id)
	return k != nil && k.files
}

// record brings events to the journal, one write at a time.
func (m *Model) record(now time.Time, e doRecord) {
	w := &modelWrite{e, now.Add(m.sync())}
	if n := len(m.writing); n > 0 {
		w.due = later(w.due, m.writing[n-1].due)
	}
	m.writing = append(m.writing, w)
	m.written(now)
}

// written goes on after what is durable by now.
func (m *Model) written(now time.Time) {
	for len(m.writing) > 0 && !now.Before(m.writing[0].due) {
		w := m.writing[0]
		m.writing = m.writing[1:]
		m.disk.append(w)
		m.core.recorded(now, w.job, w.step)
	}
}

func (d *modelDisk) append(w *modelWrite) {
	for _, ev := range w.events {
		d.journal = append(d.journal, modelEntry{w.job, ev})
	}
}
