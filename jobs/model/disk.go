package model

import (
	"slices"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/core"
	"zorilla/jobs/internal/participant"
	"zorilla/jobs/internal/record"
	"zorilla/jobs/internal/timers"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/work"
)

// disk is what a Model has on its disk, and the processes of its machine: all
// that outlives it.
type disk struct {
	journal []entry
	jobs    []jobs.ID // that were submitted here, in that order
	workers []*worker
	outputs map[jobs.ID]map[jobs.RankAttempt]*output // of jobs that were submitted here
	booked  map[string][]byte                        // bookings, by name
	keeping
}

// entry is one event in the journal of a Model.
type entry struct {
	job jobs.ID
	ev  record.Event
}

// write is events, or a booking, on their way to the journal.
type write struct {
	core.DoRecord
	booking *core.DoKeepBooking // nil = none
	forget  string              // the name of a booking; "" = none
	due     time.Time           // when they are durable
}

// output is what an origin has of the output of a worker.
type output struct {
	data []byte
	safe int // bytes that are durable
}

// worker is the directory and the process of a worker.
type worker struct {
	participant.WorkerID
	fate   Fate
	claim  *participant.ClaimRecord // nil = it is not written down that it is here
	synced bool                     // that is durable
	noted  bool                     // that its origin wanted its process to end
	told   int64                    // epoch of the table that it knows
	files  bool                     // its output files are stored

	numbered int   // the number of its newest checkpoint
	epoch    int64 // of its state

	// Of the process:
	began  time.Time
	ends   time.Time // by itself, or as it was told; zero = not so far
	exit   work.Exit
	wrote  int // when it has ended
	freed  int // bytes of output that are not kept any more
	over   bool
	failed bool // with its machine
}

func newModelDisk() disk {
	return disk{outputs: map[jobs.ID]map[jobs.RankAttempt]*output{}, booked: map[string][]byte{}, keeping: keeping{kept: map[keptName]lease{}}}
}

func (d *disk) worker(id participant.WorkerID) *worker {
	i := slices.IndexFunc(d.workers, func(k *worker) bool { return k.WorkerID == id })
	if i < 0 {
		return nil
	}
	return d.workers[i]
}

// OutputByte is what a worker of a Model writes at an offset.
func OutputByte(job jobs.ID, ra jobs.RankAttempt, at int) byte {
	return byte(int(job[0])*7 + int(job[3]) + ra.Rank*31 + ra.Attempt*17 + at)
}

// written returns how many bytes a process has written by now.
func (k *worker) written(now time.Time) int {
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
func (d *disk) fill(now time.Time, e *participant.DoReport) *wire.Report {
	rep, room := e.Report, modelReport
	for _, r := range e.Readings {
		w := &rep.Workers[r.Worker]
		k := d.worker(participant.WorkerID{Job: rep.Job, RankAttempt: w.RankAttempt})
		if k == nil || k.began.IsZero() {
			continue
		}
		wrote := k.written(now)
		w.Stdout = int64(wrote)
		if from, n := int(r.From.Stdout), min(wrote-int(r.From.Stdout), room); !r.Skip && n > 0 && from >= k.freed {
			data := make([]byte, n)
			for i := range data {
				data[i] = OutputByte(rep.Job, w.RankAttempt, from+i)
			}
			room -= n
			rep.Output = append(rep.Output, jobs.Output{Rank: w.Rank, Attempt: w.Attempt, Stream: work.Stdout, Offset: int64(from), Data: data})
		}
	}
	return &rep
}

// more reports whether there is output that a report had no room for.
func (d *disk) more(now time.Time, rep *wire.Report) bool {
	n := 0
	for _, o := range rep.Output {
		n += len(o.Data)
	}
	return n == modelReport
}

// store keeps the output of workers that still count, and reports whether it must be
// durable before the report is recorded.
func (d *disk) store(rep *wire.Report, owned map[jobs.RankAttempt]bool) (ended bool) {
	have := d.outputs[rep.Job]
	if have == nil {
		have = map[jobs.RankAttempt]*output{}
		d.outputs[rep.Job] = have
	}
	for _, o := range rep.Output {
		ra := jobs.RankAttempt{Rank: o.Rank, Attempt: o.Attempt}
		if !owned[ra] {
			continue
		}
		if have[ra] == nil {
			have[ra] = &output{}
		}
		if at := len(have[ra].data); int(o.Offset) <= at && int(o.Offset)+len(o.Data) > at {
			have[ra].data = append(have[ra].data, o.Data[at-int(o.Offset):]...)
		}
	}
	return slices.ContainsFunc(rep.Workers, func(w wire.WorkerReport) bool { return w.State == jobs.WorkerEnded && owned[w.RankAttempt] })
}

func (d *disk) syncOutput(job jobs.ID) {
	for _, o := range d.outputs[job] {
		o.safe = len(o.data)
	}
}

// received returns how much of the output of a report's workers is here.
func (d *disk) received(rep *wire.Report) map[jobs.RankAttempt]wire.Written {
	have := make(map[jobs.RankAttempt]wire.Written, len(rep.Workers))
	for _, w := range rep.Workers {
		have[w.RankAttempt] = d.has(rep.Job, w.RankAttempt)
	}
	return have
}

func (d *disk) has(job jobs.ID, ra jobs.RankAttempt) wire.Written {
	if o := d.outputs[job][ra]; o != nil {
		return wire.Written{Stdout: int64(len(o.data))}
	}
	return wire.Written{}
}

// gathered reports whether the output files of a worker can be fetched.
func (d *disk) gathered(id participant.WorkerID) bool {
	k := d.worker(id)
	return k != nil && k.files
}

// record brings events, or a booking, to the journal, one write at a time.
func (m *Model) record(now time.Time, w *write) {
	w.due = now.Add(m.cfg.Disk())
	if n := len(m.writing); n > 0 {
		w.due = timers.Later(w.due, m.writing[n-1].due)
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
		if w.booking != nil {
			m.core.Bookings.Kept(w.booking, nil)
		} else {
			m.core.Recorded(now, w.Job, w.Step)
		}
	}
}

func (d *disk) append(w *write) {
	if w.booking != nil {
		name, data := w.booking.Written()
		d.booked[name] = data
	}
	delete(d.booked, w.forget)
	for _, ev := range w.Events {
		d.journal = append(d.journal, entry{w.Job, ev})
	}
}
