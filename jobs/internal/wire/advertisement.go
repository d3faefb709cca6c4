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
	Job        jobs.ID  `json:"j"`
	Addrs      []string `json:"a"` // of the origin
	Round      int      `json:"r"`
	Wanted     int      `json:"w"`           // workers still looked for
	Others     int      `json:"b,omitempty"` // of these, for other jobs than the first one of a batch
	jobs.Needs          // of each worker, if all need the same
	Where      string   `json:"x,omitempty"` // an expression of --where
	Mounts     []string `json:"v,omitempty"` // of --mount
	Net        string   `json:"h,omitempty"` // of --net; see Network
	Among      bool     `json:"u,omitempty"` // --net job, which nodes of version 3 do not know in Net
	// Single: a node has at most one worker of the job.
	Single   bool       `json:"o,omitempty"`
	Priority int        `json:"p,omitempty"`
	Stamp    jobs.Stamp `json:"s"`
	// Kinds are what the workers of a job with groups want, besides Where; none = all want the
	// same. A node's offer is room for any mix of them.
	Kinds []jobs.Kind `json:"k,omitempty"`
	// Near asks nodes to tell where they are.
	Near bool `json:"n,omitempty"`
	// Length is how long, in milliseconds, a worker runs at most; 0 = not known.
	Length int64 `json:"e,omitempty"`
	// Each is how long a task of an array runs at most; 0 = not known, or it is none.
	Each int64 `json:"f,omitempty"`
	// Plan asks nodes from when on they could run how many workers: Answer.Steps.
	Plan bool `json:"q,omitempty"`
	// Life is how long, in milliseconds, a node may keep it in its queue.
	Life int64 `json:"l"`
	// Signed is when, in milliseconds since 1970 by the origin's clock.
	Signed int64 `json:"t"`
}

// Room is what a node holds for workers of whatever kinds. Where they want nothing of something, it
// is 0.
type Room jobs.Needs

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
	// Room is what is held for a job with kinds, of which Workers is then no more than a bound.
	Room *Room `json:"m,omitempty"`
	// Fits has a bit set for each kind of which the node could ever run a worker.
	Fits uint16 `json:"p,omitempty"`
	// How the advertisement came; not from the queue.
	Hops   int  `json:"h,omitempty"` // links; 0 = not flooded
	Rim    bool `json:"e,omitempty"` // with no hop left
	Onward int  `json:"n,omitempty"` // neighbours that it went on to, or could go on to
	// At is where the node is, see vicinity.Core.Bearings.
	At []byte `json:"b,omitempty"`
	// Steps say how many workers could begin from when on, by time, at most MaxSteps; only if the advertisement
	// asked for them. What stands in Workers is not taken off.
	Steps []Step `json:"g,omitempty"`
}

// AskFor sets what the workers of a job want.
func (ad *Advertisement) AskFor(spec *jobs.Spec) {
	ad.Needs, ad.Where, ad.Mounts = spec.Needs(0), spec.Condition(), spec.Mounts
	ad.Kinds, _ = spec.Kinds()
	ad.Single = spec.Single()
	if ad.Length = Milliseconds(spec.Walltime.Std()); spec.Array != nil { // which limits each task
		ad.Each, ad.Length = ad.Length, 0
	}
	ad.Ask(spec.Net)
}

// Milliseconds is how many a time takes: one that has begun counts, or a worker would need longer than it was held for.
func Milliseconds(d time.Duration) int64 { return (d + time.Millisecond - 1).Milliseconds() }

// Ask sets the network of a job.
func (ad *Advertisement) Ask(net string) {
	if ad.Among = net == jobs.NetJob; !ad.Among {
		ad.Net = net
	}
}

// KindsOf has a bit for the kind of each of some ranks of a job, none if all its workers want the same. It
// reports whether all of them were looked for.
func (ad *Advertisement) KindsOf(spec *jobs.Spec, ranks []jobs.RankAttempt) (kinds uint16, asked bool) {
	list, of := spec.Kinds()
	for _, ra := range ranks {
		group, _ := spec.GroupOf(ra.Rank)
		if len(ad.Kinds) == 0 && spec.Needs(ra.Rank) == ad.Needs {
			continue
		}
		if group < 0 {
			return 0, false
		}
		i := slices.Index(ad.Kinds, list[of[group]])
		if i < 0 {
			return 0, false
		}
		kinds |= 1 << i
	}
	return kinds, true
}

// Network is what workers are to reach, as of jobs.Spec.
func (ad *Advertisement) Network() string {
	if ad.Among {
		return jobs.NetJob
	}
	return ad.Net
}

// Packed is the text that is signed and flooded. Conditions of many groups leave room for fewer addresses
// than the origin has: it names as many as fit, the first one at least.
func (ad Advertisement) Packed() []byte {
	msg := codec.MustMarshal(ad)
	for len(msg) > flood.MaxPayload-SignatureLen && len(ad.Addrs) > 1 {
		ad.Addrs = ad.Addrs[:len(ad.Addrs)-1]
		msg = codec.MustMarshal(ad)
	}
	return msg
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
		!ad.Needs.Valid(), len(ad.Where) > where.MaxLength || !sanitize.Printable(ad.Where),
		!jobs.HasNet(ad.Net) || ad.Net == jobs.NetJob, ad.Among && ad.Net != "", ad.Round < 1, ad.Priority < -100 || ad.Priority > 100,
		ad.Life < 1 || ad.Life > MaxLife.Milliseconds(), len(ad.Addrs) > MaxAddrs, badLength(ad.Length), badLength(ad.Each):
		return fmt.Errorf("advertisement: %w", codec.ErrMalformed)
	}
	if list, err := mounts.ParseAll(ad.Mounts); err != nil || len(list) > jobs.MaxMounts || !slices.Equal(list.Strings(), ad.Mounts) ||
		len(list) > 0 && jobs.SizeOfMounts(ad.Mounts)+len(ad.Where) > where.MaxLength {
		return fmt.Errorf("advertisement: mounts: %w", codec.ErrMalformed)
	}
	if err := ad.checkKinds(); err != nil {
		return err
	}
	return CheckAddrs(ad.Addrs)
}

func (ad *Advertisement) checkKinds() error {
	length := len(ad.Where)
	bad := len(ad.Kinds) > jobs.MaxKinds
	for i := range ad.Kinds {
		k := &ad.Kinds[i]
		length += len(k.Where)
		bad = bad || !k.Needs.Valid() || len(k.Where) > where.MaxLength || !sanitize.Printable(k.Where)
	}
	if bad || len(ad.Kinds) > 0 && length > jobs.MaxConditions {
		return fmt.Errorf("advertisement: kinds: %w", codec.ErrMalformed)
	}
	return nil
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
		a.Room != nil && (a.Workers == 0 || !jobs.Needs(*a.Room).Valid()) ||
		a.Hops < 0 || a.Hops > flood.MaxRadius || a.Onward < 0 || a.Onward > MaxOnward || len(a.At) > vicinity.MaxBearings ||
		badSteps(a.Steps) {
		return fmt.Errorf("answer: %w", codec.ErrMalformed)
	}
	return nil
}
