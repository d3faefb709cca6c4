package wire

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"zorilla/flood"
	"zorilla/internal/codec"
	"zorilla/internal/sanitize"
	"zorilla/jobs"
	"zorilla/jobs/internal/where"
	"zorilla/jobs/mounts"
	"zorilla/vicinity"
)

// Advertisement is the flooded call for workers. It travels signed by its
// origin and fits into one packet with the flood's own header.
type Advertisement struct {
	// Job is the one that looks for workers; or a name for a batch of jobs of the origin that want the
	// same, each of which may be granted some of what is held for it.
	Job      jobs.ID    `json:"j"`
	Addrs    []string   `json:"a"` // of the origin
	Round    int        `json:"r"`
	Wanted   int        `json:"w"`           // workers still looked for
	Others   int        `json:"b,omitempty"` // of these, for other jobs than the first one of a batch
	Slots    int        `json:"c"`           // per worker
	Memory   int64      `json:"m,omitempty"`
	Disk     int64      `json:"d,omitempty"`
	GPUs     int        `json:"g,omitempty"`
	Where    string     `json:"x,omitempty"` // an expression of --where
	Mounts   []string   `json:"v,omitempty"` // of --mount
	Net      string     `json:"h,omitempty"` // of --net; see Network
	Among    bool       `json:"u,omitempty"` // --net job, which nodes of version 3 do not know in Net
	Priority int        `json:"p,omitempty"`
	Stamp    jobs.Stamp `json:"s"`
	// Near asks nodes to tell where they are.
	Near bool `json:"n,omitempty"`
	// Life is how long, in milliseconds, a node may keep it in its queue.
	Life int64 `json:"l"`
	// Signed is when, in milliseconds since 1970 by the origin's clock.
	Signed int64 `json:"t"`
}

// Limits of what is read from packets.
const (
	MaxAddrs = 8
	MaxLife  = 10 * time.Minute

	maxHolders = 64
	MaxOnward  = 4096
	MaxReason  = 200 // bytes of a decline's
)

// SignatureDomain separates signatures of advertisements from all others.
const SignatureDomain = "zorilla advertisement 2"

// SignatureLen is what trust.Sign puts before the text: key and signature.
const SignatureLen = 96

// Answer is what a node tells the origin in return: an offer (Workers > 0,
// with the key of a leased hold) or a decline (with its reason).
type Answer struct {
	Job   jobs.ID `json:"j"`
	Round int     `json:"r"` // the advertisement's; 0 = from the queue
	// Number is larger than those of all answers that the node sent before; 0 = an older
	// node, which does not count them.
	Number  uint64 `json:"z,omitempty"`
	Key     uint64 `json:"k,omitempty"`
	Workers int    `json:"w,omitempty"`
	// Lent is how many workers, beyond Workers, jobs of the batch that it is for have had of the
	// offer.
	Lent     int    `json:"l,omitempty"`
	Capacity int    `json:"c"` // workers of this job that the node could ever run at once
	Reason   string `json:"y,omitempty"`
	// Free is in how many milliseconds there will be room for a worker at the
	// latest, by the walltimes of those that run; 0 = not known.
	Free int64 `json:"f,omitempty"`
	// Held is how many workers more there would be room for if others gave back what
	// is held for them. It is told again, with Round 0, whenever it has become less.
	Held int `json:"o,omitempty"`
	// Recall asks for the offer back, if it does not make up what the job wants: a job
	// that goes before wants it. In a while it is taken.
	Recall bool `json:"q,omitempty"`
	// How the advertisement came; not from the queue.
	Hops   int  `json:"h,omitempty"` // links; 0 = not flooded
	Rim    bool `json:"e,omitempty"` // with no hop left
	Onward int  `json:"n,omitempty"` // neighbours that it went on to, or could go on to
	// At is where the node is, see vicinity.Core.Bearings.
	At []byte `json:"b,omitempty"`
}

// Needs is what one of its workers needs.
func (ad *Advertisement) Needs() jobs.Needs {
	return jobs.Needs{Slots: ad.Slots, Memory: ad.Memory, Disk: ad.Disk, GPUs: ad.GPUs}
}

// Network is what workers are to reach, as of jobs.Spec.
func (ad *Advertisement) Network() string {
	if ad.Among {
		return jobs.NetJob
	}
	return ad.Net
}

// Ask sets the network of a job.
func (ad *Advertisement) Ask(net string) {
	if ad.Among = net == jobs.NetJob; !ad.Among {
		ad.Net = net
	}
}

// DecodeAdvertisement reads a flood payload: signature, then the message.
// verify checks the signature against the origin that the job names.
func DecodeAdvertisement(b []byte, verify func(from vicinity.ID, msg, sig []byte) error) (Advertisement, error) {
	var ad Advertisement
	if len(b) < SignatureLen {
		return ad, fmt.Errorf("advertisement of %d bytes: %w", len(b), codec.ErrMalformed)
	}
	sig, msg := b[:SignatureLen], b[SignatureLen:]
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
	case !ad.Job.Valid(), ad.Wanted < 1 || ad.Wanted > jobs.MaxRanks, ad.Others < 0 || ad.Others >= ad.Wanted,
		ad.Slots < 1 || ad.Slots > jobs.MaxSlots, ad.Memory < 0,
		ad.Disk < 0, ad.GPUs < 0 || ad.GPUs > jobs.MaxGPUs, len(ad.Where) > where.MaxLength || !sanitize.Printable(ad.Where),
		!jobs.HasNet(ad.Net) || ad.Net == jobs.NetJob, ad.Among && ad.Net != "", ad.Round < 1, ad.Priority < -100 || ad.Priority > 100,
		ad.Life < 1 || ad.Life > MaxLife.Milliseconds(), len(ad.Addrs) > MaxAddrs:
		return fmt.Errorf("advertisement: %w", codec.ErrMalformed)
	}
	if list, err := mounts.ParseAll(ad.Mounts); err != nil || len(list) > jobs.MaxMounts || !slices.Equal(list.Strings(), ad.Mounts) ||
		len(list) > 0 && jobs.SizeOfMounts(ad.Mounts)+len(ad.Where) > where.MaxLength {
		return fmt.Errorf("advertisement: mounts: %w", codec.ErrMalformed)
	}
	return CheckAddrs(ad.Addrs)
}

// CheckAddrs refuses addresses that are too many, or too long.
func CheckAddrs(addrs []string) error {
	for _, a := range addrs {
		if _, err := netip.ParseAddrPort(a); err != nil {
			return fmt.Errorf("address %.60q: %w", a, codec.ErrMalformed)
		}
	}
	return nil
}

// Origin is the node that looks for workers.
func (ad *Advertisement) Origin() vicinity.ID { return ad.Job.Origin() }

// Order is the place of the job among all jobs.
func (ad *Advertisement) Order() jobs.Order {
	return jobs.Order{Priority: ad.Priority, Stamp: ad.Stamp, ID: ad.Job}
}

// Check refuses what no honest node sends.
func (a *Answer) Check() error {
	if !a.Job.Valid() || a.Round < 0 || a.Workers < 0 || a.Workers > jobs.MaxRanks || a.Capacity < 0 || a.Capacity > jobs.MaxRanks ||
		len(a.Reason) > MaxReason || !sanitize.Printable(a.Reason) || (a.Workers > 0) != (a.Key != 0) || a.Recall && a.Workers == 0 ||
		a.Held < 0 || a.Held > jobs.MaxRanks || a.Free < 0 || a.Free > jobs.MaxTime.Milliseconds() ||
		a.Hops < 0 || a.Hops > flood.MaxRadius || a.Onward < 0 || a.Onward > MaxOnward || len(a.At) > vicinity.MaxBearings {
		return fmt.Errorf("answer: %w", codec.ErrMalformed)
	}
	return nil
}
