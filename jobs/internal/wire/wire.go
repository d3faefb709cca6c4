// Package wire has the messages by which nodes work together on jobs, as PROTOCOL.md
// lists them: packets (Advertisement in a flood, Answer, and what an origin says of an
// offer without a request) and the bodies of peer requests, all msgpack (see package codec).
// Decode and Check refuse whatever is malformed before anybody acts on it.
//
// It also has the leases and timeouts that both ends must agree on, and the reasons
// of declines.
package wire

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"time"

	"zorilla/internal/codec"
	"zorilla/internal/sanitize"
	"zorilla/jobs"
	"zorilla/jobs/work"
	"zorilla/vicinity"
)

type (
	// Grant is the primary's yes to an offer: prepare these ranks.
	Grant struct {
		Job   jobs.ID  `json:"job"`
		Addrs []string `json:"addrs"` // of the origin
		Key   uint64   `json:"key"`   // of the hold; checked
		// Held is the batch that the workers are held for, "" = the job's own: see
		// Advertisement.Job.
		Held  jobs.ID            `json:"held,omitempty"`
		Ranks []jobs.RankAttempt `json:"ranks"`
		Spec  jobs.Spec          `json:"spec"`
		Stamp jobs.Stamp         `json:"stamp"`
		// Holders have some or all of the inputs, besides the origin.
		Holders []vicinity.ID `json:"holders,omitempty"`
		// Resume is of the ranks that have checkpoints.
		Resume []Resume `json:"resume,omitempty"`
		// Spares, instead of Ranks: so many workers of the hold are claimed for ranks that may be lost. A later
		// grant with the same key gives them to ranks.
		Spares int `json:"spares,omitempty"`
	}

	// Start lets prepared ranks run.
	Start struct {
		Job   jobs.ID            `json:"job"`
		Ranks []jobs.RankAttempt `json:"ranks"`
		Size  int                `json:"size"`
		Hosts []Host             `json:"hosts"`           // the table so far: where ranks were started, by lowest rank
		Epoch int64              `json:"epoch,omitempty"` // of the table, from 1; 0 = not told by older nodes
		// Master is the IP address of rank 0's node, which may not be in the
		// table yet; "" = not known.
		Master     string      `json:"master,omitempty"`
		MasterNode vicinity.ID `json:"master_node,omitempty"`
	}

	// Release ends holds and workers: of the named ranks, or of everything
	// that the node does for the job if none is named.
	Release struct {
		Job   jobs.ID            `json:"job"`
		Ranks []jobs.RankAttempt `json:"ranks,omitempty"`
		// Stop ends the processes of named ranks, but how they end is still to
		// be reported.
		Stop bool `json:"stop,omitempty"`
		// Notice, with Stop: the programs hear of it before, if the job wants that (jobs.Notices.Signal).
		Notice bool `json:"notice,omitempty"`
		// Spares ends the job's spares and nothing else.
		Spares bool `json:"spares,omitempty"`
	}

	// Report is all that a participant has to tell: the state of each of its
	// workers, and output that the origin has not acknowledged. Sending it
	// again is harmless.
	Report struct {
		Job     jobs.ID        `json:"job"`
		Addrs   []string       `json:"addrs,omitempty"` // of the participant, for an origin that has just been restarted
		Workers []WorkerReport `json:"workers"`
		Output  []jobs.Output  `json:"output,omitempty"`
		// Away is set in the last report of a node that is being stopped: its
		// workers go on, and it may be back within this time.
		Away time.Duration `json:"away,omitempty"`
		// Epoch is that of the table that all workers which run here know; 0 =
		// none of them is to be told of changes.
		Epoch  int64   `json:"epoch,omitempty"`
		Spares *Spares `json:"spares,omitempty"` // that the node has for the job; nil = none
	}

	// WorkerReport is one worker in a Report.
	WorkerReport struct {
		jobs.RankAttempt
		State  jobs.WorkerState `json:"state"`
		Reason string           `json:"reason,omitempty"` // of WorkerLost: why it could not be run; of WorkerRunning: what it waits for
		// Declined, of WorkerLost: its program did not begin, so that nothing is
		// lost, and it may run elsewhere.
		Declined bool             `json:"declined,omitempty"`
		Exit     *work.Exit       `json:"exit,omitempty"`
		Output   *jobs.RankOutput `json:"output,omitempty"` // manifest of the output files, if there are any
		Warn     []string         `json:"warn,omitempty"`
		Stdout   int64            `json:"stdout,omitempty"` // bytes written so far, in all
		Stderr   int64            `json:"stderr,omitempty"`
		Fetched  int64            `json:"fetched,omitempty"` // bytes of input that were moved
		Cached   int64            `json:"cached,omitempty"`
		// Laid counts what brought the inputs nearer to the worker's directory so far, large and
		// small: it tells only that they get on.
		Laid int64 `json:"laid,omitempty"`
		// Storing, of WorkerRunning: its process has ended, and its output files are being stored.
		Storing    bool              `json:"storing,omitempty"`
		Tasks      *WorkerTasks      `json:"tasks,omitempty"` // of an array
		Port       int               `json:"port,omitempty"`  // of a ready rank 0: free here, see Host
		Checkpoint *CheckpointReport `json:"checkpoint,omitempty"`
	}

	// Ack answers a Report.
	Ack struct {
		Known   bool        `json:"known"` // false: the origin does not know the job; drop everything
		State   jobs.State  `json:"state"`
		Reason  string      `json:"reason,omitempty"`
		Workers []WorkerAck `json:"workers,omitempty"`
		Start   *Start      `json:"start,omitempty"` // for ready ranks that missed their START
		Table   *Table      `json:"table,omitempty"` // newer than Report.Epoch
		// NoSpares: those of Report.Spares are not wanted.
		NoSpares bool `json:"no_spares,omitempty"`
	}

	// WorkerAck answers a WorkerReport.
	WorkerAck struct {
		jobs.RankAttempt
		// Bytes that are durable at the origin, and need not be kept any more.
		Stdout int64 `json:"stdout"`
		Stderr int64 `json:"stderr"`
		// Bytes beyond these that it has, and need not be sent again.
		AheadOut   int64           `json:"ahead_out,omitempty"`
		AheadErr   int64           `json:"ahead_err,omitempty"`
		Drop       bool            `json:"drop,omitempty"`   // superseded or not wanted any more: stop it, forget it
		Done       bool            `json:"done,omitempty"`   // all of it is safe at the origin: forget it
		Stop       bool            `json:"stop,omitempty"`   // end its process, and report how it ended
		Notice     bool            `json:"notice,omitempty"` // with Stop, as in Release
		Tasks      *WorkerTasksAck `json:"tasks,omitempty"`
		Checkpoint *CheckpointAck  `json:"checkpoint,omitempty"`
	}
)

const (
	MaxBody        = 8 << 20 // of a peer message
	MaxReportBytes = 1 << 20 // of output in one report
)

// Sanity of what arrives over HTTP; the sender is known by its certificate.

// CheckRanks refuses ranks and attempts that no job has.
func CheckRanks(ras []jobs.RankAttempt) error {
	if len(ras) > jobs.MaxRanks {
		return fmt.Errorf("%d ranks: %w", len(ras), codec.ErrMalformed)
	}
	for _, ra := range ras {
		if ra.Rank < 0 || ra.Rank >= jobs.MaxRanks || ra.Attempt < 1 || ra.Attempt > math.MaxInt32 {
			return fmt.Errorf("rank %d, attempt %d: %w", ra.Rank, ra.Attempt, codec.ErrMalformed)
		}
	}
	return nil
}

// Check refuses what no honest node sends.
func (g *Grant) Check() error {
	if !g.Job.Valid() || g.Held != "" && !g.Held.Valid() || len(g.Addrs) > MaxAddrs || len(g.Holders) > maxHolders ||
		(len(g.Ranks) == 0) == (g.Spares == 0) || badSpares(g.Spares) {
		return fmt.Errorf("grant: %w", codec.ErrMalformed)
	}
	for _, id := range g.Holders {
		if !id.Valid() {
			return fmt.Errorf("grant: holder %.40q: %w", id, codec.ErrMalformed)
		}
	}
	if err := g.Spec.Validate(); err != nil {
		return err
	}
	if g.Spec.OnEnd != "" { // it is for the origin, and is sent to nobody
		return fmt.Errorf("grant: a command for another node: %w", codec.ErrMalformed)
	}
	if err := CheckAddrs(g.Addrs); err != nil {
		return err
	}
	seen := make(map[jobs.RankAttempt]bool, len(g.Ranks))
	for _, ra := range g.Ranks {
		if seen[ra] || ra.Rank >= g.Spec.Workers() {
			return fmt.Errorf("grant: rank %d: %w", ra.Rank, codec.ErrMalformed)
		}
		seen[ra] = true
	}
	if len(g.Resume) > len(g.Ranks) {
		return fmt.Errorf("grant: checkpoints: %w", codec.ErrMalformed)
	}
	for i := range g.Resume {
		if err := g.Resume[i].check(g.Spec.Workers()); err != nil {
			return err
		}
	}
	return CheckRanks(g.Ranks)
}

// Check refuses what no honest node sends.
func (s *Start) Check() error {
	if s.MasterNode != "" && !s.MasterNode.Valid() {
		return fmt.Errorf("start: master: %w", codec.ErrMalformed)
	}
	if !s.Job.Valid() || s.Size < 1 || s.Epoch < 0 || s.Size > jobs.MaxRanks || len(s.Hosts) > jobs.MaxRanks {
		return fmt.Errorf("start: %w", codec.ErrMalformed)
	}
	addrs := []string{s.Master}
	for _, h := range s.Hosts {
		if !h.Node.Valid() || badPort(h.Port) || len(h.Ranks) == 0 || len(h.Ranks) > jobs.MaxRanks {
			return fmt.Errorf("start: host: %w", codec.ErrMalformed)
		}
		addrs = append(addrs, h.Addr)
	}
	for _, a := range addrs {
		if _, err := netip.ParseAddr(a); a != "" && err != nil {
			return fmt.Errorf("start: address %.60q: %w", a, codec.ErrMalformed)
		}
	}
	return CheckRanks(s.Ranks)
}

// Check refuses what no honest node sends.
func (r *Release) Check() error {
	if !r.Job.Valid() || r.Stop && len(r.Ranks) == 0 || r.Spares && (r.Stop || len(r.Ranks) > 0) {
		return fmt.Errorf("release: %w", codec.ErrMalformed)
	}
	return CheckRanks(r.Ranks)
}

// Check refuses what no honest node sends.
func (r *Report) Check() error {
	if !r.Job.Valid() || len(r.Addrs) > MaxAddrs || len(r.Workers) > jobs.MaxSlots*4 || len(r.Output) > jobs.MaxSlots*16 ||
		r.Away < 0 || r.Epoch < 0 || r.Spares.bad() {
		return fmt.Errorf("report: %w", codec.ErrMalformed)
	}
	if err := CheckAddrs(r.Addrs); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	for i := range r.Workers {
		if err := r.Workers[i].check(); err != nil {
			return err
		}
	}
	for _, o := range r.Output {
		if o.Rank < 0 || o.Rank >= jobs.MaxRanks || o.Attempt < 1 || o.Offset < 0 || (o.Stream != work.Stdout && o.Stream != work.Stderr) {
			return fmt.Errorf("report: output: %w", codec.ErrMalformed)
		}
	}
	return nil
}

// maxCPU is more than any worker has used, in seconds. What is no number cannot be told as JSON.
const maxCPU = 1e15

func (w *WorkerReport) check() error {
	switch w.State {
	case jobs.WorkerPreparing, jobs.WorkerReady, jobs.WorkerRunning, jobs.WorkerEnded, jobs.WorkerLost:
	default:
		return fmt.Errorf("report: worker state %.20q: %w", w.State, codec.ErrMalformed)
	}
	bad := len(w.Reason) > sanitize.MaxText || !sanitize.Printable(w.Reason) || len(w.Warn) > jobs.MaxWarnings ||
		w.Stdout < 0 || w.Stderr < 0 || w.Fetched < 0 || w.Cached < 0 || w.Laid < 0 || badPort(w.Port)
	for _, t := range w.Warn {
		bad = bad || len(t) > sanitize.MaxText || !sanitize.Printable(t)
	}
	if e := w.Exit; e != nil {
		bad = bad || e.Code < 0 || e.Code > 255 || len(e.Detail) > sanitize.MaxText ||
			!sanitize.Printable(e.Detail) || len(e.Cause) > 32 || !sanitize.Printable(string(e.Cause)) ||
			!(e.CPU >= 0 && e.CPU < maxCPU) || e.Peak < 0 || e.Read < 0 || e.Written < 0 ||
			e.Left != nil && (e.Left.Tasks < 1 || e.Left.Task < 0 || len(e.Left.Name) > sanitize.MaxText || !sanitize.Printable(e.Left.Name))
	}
	if o := w.Output; o != nil {
		bad = bad || o.Rank != w.Rank || o.Attempt != w.Attempt || o.Manifest.IsZero() ||
			o.Files < 0 || o.Bytes < 0 || len(o.Left) > jobs.MaxLeft || !sanitize.Printable(o.Left)
	}
	if bad {
		return fmt.Errorf("report: rank %d: %w", w.Rank, codec.ErrMalformed)
	}
	if err := errors.Join(w.Tasks.check(), w.Checkpoint.check()); err != nil {
		return err
	}
	return CheckRanks([]jobs.RankAttempt{w.RankAttempt})
}

// Stuck reports whether the origin took none of a report's output, so that
// sending the rest at once would be in vain.
func (a *Ack) Stuck(rep Report) bool {
	if a.tookResults(rep) {
		return false
	}
	if len(rep.Output) == 0 {
		return true
	}
	for _, o := range rep.Output {
		for _, k := range a.Workers {
			if k.RankAttempt == (jobs.RankAttempt{Rank: o.Rank, Attempt: o.Attempt}) && (k.Stdout+k.AheadOut > o.Offset || k.Stderr+k.AheadErr > o.Offset) {
				return false
			}
		}
	}
	return true
}

// tookResults reports whether the origin took results out of a report, so that
// more can follow at once.
func (a *Ack) tookResults(rep Report) bool {
	return slices.ContainsFunc(rep.Workers, func(w WorkerReport) bool {
		return w.Tasks != nil && slices.ContainsFunc(a.Workers, func(k WorkerAck) bool {
			return k.RankAttempt == w.RankAttempt && k.Tasks != nil && k.Tasks.Results > w.Tasks.From
		})
	})
}

// OfReplica returns what a worker of a job with replicas is told at its start:
// the hosts of its own replica, with their ranks.
func (s *Start) OfReplica(spec *jobs.Spec, worker int) Start {
	if spec.Replicas <= 1 {
		return *s
	}
	_, replica := spec.RankOf(worker)
	out := *s
	out.Hosts, out.Master, out.Epoch = nil, "", 0
	for _, h := range s.Hosts {
		own := Host{Node: h.Node, Addr: h.Addr, Port: h.Port}
		for _, w := range h.Ranks {
			if rank, of := spec.RankOf(w); of == replica {
				own.Ranks = append(own.Ranks, rank)
			}
		}
		if slices.Contains(own.Ranks, 0) {
			out.Master = own.Addr
		}
		if len(own.Ranks) > 0 {
			out.Hosts = append(out.Hosts, own)
		}
	}
	slices.SortFunc(out.Hosts, func(a, b Host) int { return a.Ranks[0] - b.Ranks[0] })
	return out
}
