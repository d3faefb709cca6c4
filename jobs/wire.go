package jobs

import (
	"fmt"
	"math"
	"net/netip"
	"time"

	"zorilla/flood"
	"zorilla/internal/codec"
	"zorilla/jobs/process"
	"zorilla/vicinity"
)

// Advertisement is the flooded call for workers. It travels signed by its
// origin and fits into one packet with the flood's own header.
type Advertisement struct {
	Job      ID       `json:"j"`
	Addrs    []string `json:"a"` // of the origin
	Round    int      `json:"r"`
	Wanted   int      `json:"w"` // workers still looked for
	Slots    int      `json:"c"` // per worker
	Memory   int64    `json:"m,omitempty"`
	Disk     int64    `json:"d,omitempty"`
	GPUs     int      `json:"g,omitempty"`
	Where    string   `json:"x,omitempty"` // an expression of --where
	Priority int      `json:"p,omitempty"`
	Stamp    Stamp    `json:"s"`
	// Near asks nodes to tell where they are.
	Near bool `json:"n,omitempty"`
	// Life is how long, in milliseconds, a node may keep it in its queue.
	Life int64 `json:"l"`
	// Signed is when, in milliseconds since 1970 by the origin's clock.
	Signed int64 `json:"t"`
}

// Limits of what is read from packets.
const (
	maxAddrs = 8
	maxLife  = 10 * time.Minute

	maxHolders = 64
	maxOnward  = 4096
	maxText    = 500 // bytes of a reason or a warning
	maxReason  = 200 // of a decline's
)

// SignatureDomain separates signatures of advertisements from all others.
const SignatureDomain = "zorilla advertisement 2"

// signatureLen is what trust.Sign puts before the text: key and signature.
const signatureLen = 96

// decodeAdvertisement reads a flood payload: signature, then the message.
// verify checks the signature against the origin that the job names.
func decodeAdvertisement(b []byte, verify func(from vicinity.ID, msg, sig []byte) error) (Advertisement, error) {
	var ad Advertisement
	if len(b) < signatureLen {
		return ad, fmt.Errorf("advertisement of %d bytes: %w", len(b), codec.ErrMalformed)
	}
	sig, msg := b[:signatureLen], b[signatureLen:]
	if err := codec.Unmarshal(msg, &ad); err != nil {
		return ad, err
	}
	if err := ad.check(); err != nil {
		return ad, err
	}
	return ad, verify(ad.Origin(), msg, sig)
}

func (ad *Advertisement) check() error {
	switch {
	case !ad.Job.Valid(), ad.Wanted < 1 || ad.Wanted > MaxRanks, ad.Slots < 1 || ad.Slots > MaxSlots, ad.Memory < 0,
		ad.Disk < 0, ad.GPUs < 0 || ad.GPUs > MaxGPUs, len(ad.Where) > MaxWhere || !printable(ad.Where),
		ad.Round < 1, ad.Priority < -100 || ad.Priority > 100,
		ad.Life < 1 || ad.Life > maxLife.Milliseconds(), len(ad.Addrs) > maxAddrs:
		return fmt.Errorf("advertisement: %w", codec.ErrMalformed)
	}
	return checkAddrs(ad.Addrs)
}

func checkAddrs(addrs []string) error {
	for _, a := range addrs {
		if _, err := netip.ParseAddrPort(a); err != nil {
			return fmt.Errorf("address %.60q: %w", a, codec.ErrMalformed)
		}
	}
	return nil
}

// Origin is the node that looks for workers.
func (ad *Advertisement) Origin() vicinity.ID { return ad.Job.Origin() }

func (ad *Advertisement) order() order { return order{ad.Priority, ad.Stamp, ad.Job} }

// Answer is what a node tells the origin in return: an offer (Workers > 0,
// with the key of a leased hold) or a decline (with its reason).
type Answer struct {
	Job      ID     `json:"j"`
	Round    int    `json:"r"` // the advertisement's; 0 = from the queue
	Key      uint64 `json:"k,omitempty"`
	Workers  int    `json:"w,omitempty"`
	Capacity int    `json:"c"` // workers of this job that the node could ever run at once
	Reason   string `json:"y,omitempty"`
	// Free is in how many milliseconds there will be room for a worker at the
	// latest, by the walltimes of those that run; 0 = not known.
	Free int64 `json:"f,omitempty"`
	// How the advertisement came; not from the queue.
	Hops   int  `json:"h,omitempty"` // links; 0 = not flooded
	Rim    bool `json:"e,omitempty"` // with no hop left
	Onward int  `json:"n,omitempty"` // neighbours that it went on to, or could go on to
	// At is where the node is, see vicinity.Core.Bearings.
	At []byte `json:"b,omitempty"`
}

func (a *Answer) check() error {
	if !a.Job.Valid() || a.Round < 0 || a.Workers < 0 || a.Workers > MaxRanks || a.Capacity < 0 || a.Capacity > MaxRanks ||
		len(a.Reason) > maxReason || !printable(a.Reason) || (a.Workers > 0) != (a.Key != 0) ||
		a.Free < 0 || a.Free > MaxTime.Milliseconds() || a.Hops < 0 || a.Hops > flood.MaxRadius || a.Onward < 0 || a.Onward > maxOnward || len(a.At) > vicinity.MaxBearings {
		return fmt.Errorf("answer: %w", codec.ErrMalformed)
	}
	return nil
}

// Messages between an origin and a participant, over HTTP/2 (see doc.go).
type (
	// Grant is the primary's yes to an offer: prepare these ranks.
	Grant struct {
		Job   ID            `json:"job"`
		Addrs []string      `json:"addrs"` // of the origin
		Key   uint64        `json:"key"`   // of the hold; checked
		Ranks []RankAttempt `json:"ranks"`
		Spec  Spec          `json:"spec"`
		Stamp Stamp         `json:"stamp"`
		// Holders have some or all of the inputs, besides the origin.
		Holders []vicinity.ID `json:"holders,omitempty"`
	}

	// Start lets prepared ranks run.
	Start struct {
		Job   ID            `json:"job"`
		Ranks []RankAttempt `json:"ranks"`
		Size  int           `json:"size"`
		Hosts []Host        `json:"hosts"`           // the table so far: where ranks were started, by lowest rank
		Epoch int64         `json:"epoch,omitempty"` // of the table, from 1; 0 = not told by older nodes
		// Master is the IP address of rank 0's node, which may not be in the
		// table yet; "" = not known.
		Master string `json:"master,omitempty"`
		master vicinity.ID
	}

	// Host is a node's part of the rank table.
	Host struct {
		Node  vicinity.ID `json:"node"`
		Addr  string      `json:"addr"` // IP address of the node
		Ranks []int       `json:"ranks"`
	}

	// Release ends holds and workers: of the named ranks, or of everything
	// that the node does for the job if none is named.
	Release struct {
		Job   ID            `json:"job"`
		Ranks []RankAttempt `json:"ranks,omitempty"`
		// Stop ends the processes of named ranks, but how they end is still to
		// be reported.
		Stop bool `json:"stop,omitempty"`
	}

	// Report is all that a participant has to tell: the state of each of its
	// workers, and output that the origin has not acknowledged. Sending it
	// again is harmless.
	Report struct {
		Job     ID             `json:"job"`
		Addrs   []string       `json:"addrs,omitempty"` // of the participant, for an origin that has just been restarted
		Workers []WorkerReport `json:"workers"`
		Output  []Output       `json:"output,omitempty"`
		// Away is set in the last report of a node that is being stopped: its
		// workers go on, and it may be back within this time.
		Away time.Duration `json:"away,omitempty"`
		// Epoch is that of the table that all workers which run here know; 0 =
		// none of them is to be told of changes.
		Epoch int64 `json:"epoch,omitempty"`
	}

	// WorkerReport is one worker in a Report.
	WorkerReport struct {
		RankAttempt
		State  WorkerState `json:"state"`
		Reason string      `json:"reason,omitempty"` // of WorkerLost: why it could not be run
		// Declined, of WorkerLost: its program did not begin, so that nothing is
		// lost, and it may run elsewhere.
		Declined bool          `json:"declined,omitempty"`
		Exit     *process.Exit `json:"exit,omitempty"`
		Output   *RankOutput   `json:"output,omitempty"` // manifest of the output files, if there are any
		Warn     []string      `json:"warn,omitempty"`
		Stdout   int64         `json:"stdout,omitempty"` // bytes written so far, in all
		Stderr   int64         `json:"stderr,omitempty"`
		Fetched  int64         `json:"fetched,omitempty"` // bytes of input that were moved
		Cached   int64         `json:"cached,omitempty"`
		Tasks    *WorkerTasks  `json:"tasks,omitempty"` // of an array
	}

	// Ack answers a Report.
	Ack struct {
		Known   bool        `json:"known"` // false: the origin does not know the job; drop everything
		State   State       `json:"state"`
		Reason  string      `json:"reason,omitempty"`
		Workers []WorkerAck `json:"workers,omitempty"`
		Start   *Start      `json:"start,omitempty"` // for ready ranks that missed their START
		Table   *Table      `json:"table,omitempty"` // newer than Report.Epoch
	}

	// WorkerAck answers a WorkerReport.
	WorkerAck struct {
		RankAttempt
		// Bytes that are durable at the origin, and need not be kept any more.
		Stdout int64 `json:"stdout"`
		Stderr int64 `json:"stderr"`
		// Bytes beyond these that it has, and need not be sent again.
		AheadOut int64           `json:"ahead_out,omitempty"`
		AheadErr int64           `json:"ahead_err,omitempty"`
		Drop     bool            `json:"drop,omitempty"` // superseded or not wanted any more: stop it, forget it
		Done     bool            `json:"done,omitempty"` // all of it is safe at the origin: forget it
		Stop     bool            `json:"stop,omitempty"` // end its process, and report how it ended
		Tasks    *WorkerTasksAck `json:"tasks,omitempty"`
	}
)

const (
	maxBody        = 8 << 20 // of a peer message
	maxReportBytes = 1 << 20 // of output in one report
)

// Sanity of what arrives over HTTP; the sender is known by its certificate.

func checkRanks(ras []RankAttempt) error {
	if len(ras) > MaxRanks {
		return fmt.Errorf("%d ranks: %w", len(ras), codec.ErrMalformed)
	}
	for _, ra := range ras {
		if ra.Rank < 0 || ra.Rank >= MaxRanks || ra.Attempt < 1 || ra.Attempt > math.MaxInt32 {
			return fmt.Errorf("rank %d, attempt %d: %w", ra.Rank, ra.Attempt, codec.ErrMalformed)
		}
	}
	return nil
}

func (g *Grant) check() error {
	if !g.Job.Valid() || len(g.Addrs) > maxAddrs || len(g.Holders) > maxHolders || len(g.Ranks) == 0 {
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
	if err := checkAddrs(g.Addrs); err != nil {
		return err
	}
	seen := make(map[RankAttempt]bool, len(g.Ranks))
	for _, ra := range g.Ranks {
		if seen[ra] || ra.Rank >= g.Spec.Workers() {
			return fmt.Errorf("grant: rank %d: %w", ra.Rank, codec.ErrMalformed)
		}
		seen[ra] = true
	}
	return checkRanks(g.Ranks)
}

func (s *Start) check() error {
	if !s.Job.Valid() || s.Size < 1 || s.Epoch < 0 || s.Size > MaxRanks || len(s.Hosts) > MaxRanks {
		return fmt.Errorf("start: %w", codec.ErrMalformed)
	}
	addrs := []string{s.Master}
	for _, h := range s.Hosts {
		if !h.Node.Valid() || len(h.Ranks) == 0 || len(h.Ranks) > MaxRanks {
			return fmt.Errorf("start: host: %w", codec.ErrMalformed)
		}
		addrs = append(addrs, h.Addr)
	}
	for _, a := range addrs {
		if _, err := netip.ParseAddr(a); a != "" && err != nil {
			return fmt.Errorf("start: address %.60q: %w", a, codec.ErrMalformed)
		}
	}
	return checkRanks(s.Ranks)
}

func (r *Release) check() error {
	if !r.Job.Valid() || r.Stop && len(r.Ranks) == 0 {
		return fmt.Errorf("release: %w", codec.ErrMalformed)
	}
	return checkRanks(r.Ranks)
}

func (r *Report) check() error {
	if !r.Job.Valid() || len(r.Addrs) > maxAddrs || len(r.Workers) > MaxSlots*4 || len(r.Output) > MaxSlots*16 || r.Away < 0 || r.Epoch < 0 {
		return fmt.Errorf("report: %w", codec.ErrMalformed)
	}
	if err := checkAddrs(r.Addrs); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	for i := range r.Workers {
		if err := r.Workers[i].check(); err != nil {
			return err
		}
	}
	for _, o := range r.Output {
		if o.Rank < 0 || o.Rank >= MaxRanks || o.Attempt < 1 || o.Offset < 0 || (o.Stream != process.Stdout && o.Stream != process.Stderr) {
			return fmt.Errorf("report: output: %w", codec.ErrMalformed)
		}
	}
	return nil
}

func (w *WorkerReport) check() error {
	switch w.State {
	case WorkerPreparing, WorkerReady, WorkerRunning, WorkerEnded, WorkerLost:
	default:
		return fmt.Errorf("report: worker state %.20q: %w", w.State, codec.ErrMalformed)
	}
	bad := len(w.Reason) > maxText || !printable(w.Reason) || len(w.Warn) > maxWarnings || w.Stdout < 0 || w.Stderr < 0 || w.Fetched < 0 || w.Cached < 0
	for _, t := range w.Warn {
		bad = bad || len(t) > maxText || !printable(t)
	}
	if e := w.Exit; e != nil {
		bad = bad || e.Code < 0 || e.Code > 255 || len(e.Detail) > maxText || !printable(e.Detail) || len(e.Cause) > 32 || !printable(string(e.Cause))
	}
	if o := w.Output; o != nil {
		bad = bad || o.Rank != w.Rank || o.Attempt != w.Attempt || o.Manifest.IsZero() || o.Files < 0 || o.Bytes < 0
	}
	if bad {
		return fmt.Errorf("report: rank %d: %w", w.Rank, codec.ErrMalformed)
	}
	if err := w.Tasks.check(); err != nil {
		return err
	}
	return checkRanks([]RankAttempt{w.RankAttempt})
}
