// Package origin has the jobs that were submitted at a node: their files and the journal
// around what the core decides of them, what clients ask about them, and what is kept of
// those that have ended, for how long.
package origin

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"zorilla/jobs"
	"zorilla/jobs/internal/core"
	"zorilla/jobs/internal/executor"
	"zorilla/jobs/internal/loop"
	"zorilla/jobs/internal/onend"
	"zorilla/jobs/internal/participant"
	"zorilla/jobs/internal/peer"
	"zorilla/jobs/internal/primary"
	"zorilla/jobs/internal/record"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/journal"
	"zorilla/transfer"
	"zorilla/vicinity"
)

// Config is what Jobs need. All fields but the limits must be set.
type Config struct {
	Self    vicinity.Member
	Dir     string // absolute
	Journal journal.Journal
	Store   transfer.PinStore
	// Fetch brings files from other nodes.
	Fetch executor.FetchFunc
	// Learn takes note of the addresses of a node.
	Learn func(id vicinity.ID, addrs []string)
	Peers *peer.Client

	// Room is that of the disk of Dir, see output.Spool.
	Room func(have, more int64) error

	// KeepFor is how long results of jobs that have ended are kept; 0 = a week.
	// KeepOutputs is how many bytes of them; 0 = without limit.
	KeepFor     time.Duration
	KeepOutputs int64

	// Hooks runs the commands of --on-end; nil = jobs with one are refused.
	Hooks onend.Runner

	Rand *rand.Rand
	Log  zerolog.Logger
	// Written reports how much a worker at this node has written.
	Written func(participant.WorkerID) wire.Written
}

// Jobs are the jobs that were submitted at this node. Each part of it has the state that it
// changes; what is here takes them through what happens to a job. Its methods run in the loop, but for
// those that say that they wait for it, or run outside of it.
type Jobs struct {
	cfg  Config
	self vicinity.Member
	log  zerolog.Logger
	loop *loop.Loop
	core *core.Core
	disk *disk

	table     *table     // where each of them is found
	inputs    *inputs    // their files, before they begin
	feeds     *feeds     // their standard input
	intake    *intake    // their output, as it comes
	collector *collector // the files that they made
	hooks     *hooks     // what is run when they have ended
	answers   answers    // for those who wait until something is durable
}

// API is what clients ask about these jobs.
func (o *Jobs) API() API { return API{o} }

// API is what clients of a node ask about its jobs. Its methods may be called from
// any goroutine.
type API struct{ own *Jobs }

// Wake returns when due is to be called; zero = not before something changes.
func (o *Jobs) Wake() time.Time { return o.table.wake() }

// Due forgets what is due to be forgotten, and takes jobs out of memory that have ended.
func (o *Jobs) Due() { o.table.due() }

// Perform does an effect that has to do with the journal, with who waits for an answer
// or with files of a job. It reports false of all others.
func (o *Jobs) Perform(a core.Action) bool {
	switch e := a.Effect.(type) {
	case core.DoRecord:
		o.record(e)
	case core.DoSettle:
		o.file(e.Job)
	case primary.DoAccepted:
		if j := o.table.get(a.Job); j != nil {
			j.decided(nil)
		}
	case primary.DoAnswer:
		o.answers.give(e)
	case primary.DoCollect:
		if j := o.table.get(a.Job); j != nil {
			o.collector.collect(j, e)
		}
	default:
		return false
	}
	return true
}

// Close closes the files of all jobs when the loop has ended.
func (o *Jobs) Close() {
	for j := range o.table.whole() {
		j.output.Spool.Close()
		j.stdin.Close()
	}
}

// record makes events durable. A job whose submission cannot be written is
// refused; after any other failure the node cannot keep its promises and stops:
// its jobs go on from the journal when it is started again.
func (o *Jobs) record(e core.DoRecord) {
	j := o.table.get(e.Job)
	if j == nil { // it was refused meanwhile
		return
	}
	events := slices.Clone(e.Events)
	for i := range events {
		if events[i].Kind == record.Ended { // who finds less than that knows that something is lost
			events[i].Stored, _, _ = j.output.Spool.State()
		}
	}
	write(o.cfg.Journal, e.Job, events, func(err error) {
		o.loop.Post(func() {
			switch {
			case err == nil:
				o.core.Recorded(time.Now(), e.Job, e.Step)
				if !j.stdin.Whole && slices.ContainsFunc(e.Events, func(ev record.Event) bool { return ev.Kind == record.Exited }) {
					o.feeds.drop(j)
				}
			case j.submitters != nil || j.refusal != nil:
				o.refused(j, err)
			default:
				o.loop.Fail(fmt.Errorf("write the journal: %w", err))
			}
		})
	})
}

// refused forgets a job whose submission could not be written, and what came
// after it.
func (o *Jobs) refused(j *job, err error) {
	if j.refusal != nil {
		return
	}
	id := j.Primary.Rec.ID
	o.table.drop(j)
	o.inputs.drop(id)
	j.refusal = err
	j.decided(err)
	for _, a := range o.core.Refuse(id) {
		o.answers.give(a)
	}
}

// file files a job that has ended, which is durable now.
func (o *Jobs) file(id jobs.ID) {
	j := o.table.get(id)
	j.output.Spool.Close()
	o.feeds.drop(j)
	o.table.settled(&j.Primary.Rec, j.wrote())
	j.filed = true
	o.forgetSaved(&j.Primary.Rec)
	o.hooks.owe(&j.Primary.Rec)
}
