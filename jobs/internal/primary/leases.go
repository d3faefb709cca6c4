package primary

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"zorilla/internal/units"
	"zorilla/jobs"
	"zorilla/jobs/internal/record"
	"zorilla/jobs/internal/timers"
	"zorilla/jobs/internal/wire"
	"zorilla/vicinity"
)

const (
	// maxAway bounds how long a node that was stopped is waited for.
	maxAway = 10 * time.Minute
	// goneGrace is what is left of it once the overlay has declared the node
	// dead.
	goneGrace = 3 * time.Second
	// backGrace is what a stopped node has for its first report once it is a member
	// again, or said to be one by others that have not heard yet of its end.
	backGrace = 2 * wire.PartLease
)

// Leases is the participants of a job: who stays silent for longer than its
// lease is given up.
type Leases map[vicinity.ID]*participantRecord

// participantRecord is what the primary knows of a participant.
type participantRecord struct {
	lastContact  time.Time // last sign of life
	unverified   bool      // this node was away itself: until a report comes, what the overlay says of it may be old
	expectedBack time.Time // its node is being started again, until then at the latest; zero = no
	seenBack     time.Time // since when that is a member again; zero = it is not
	silent       bool      // that it was not heard of late is told to who watches the job
	key          uint64    // of the offer that was granted last
	rtt          time.Duration

	granted  time.Time // when it was granted something last
	watched  bool      // it has ranks that are not ready, or were started and do not run
	progress time.Time // it was granted something, or has reported more of what it prepares
	laid     int64     // as it has reported last

	comparedAt   time.Time                      // when its report was last compared with what it has
	missingSince map[jobs.RankAttempt]time.Time // ranks that it has, but its reports do not name
}

// back returns until when a participant is waited for whose node is being started again; zero = it is not.
func (k *participantRecord) back() time.Time {
	if k.seenBack.IsZero() {
		return k.expectedBack
	}
	return timers.Earlier(k.expectedBack, k.seenBack.Add(backGrace))
}

// nodes lists the participants.
func (ls Leases) nodes() []vicinity.ID { return slices.Sorted(maps.Keys(ls)) }

// at returns the record of a participant, a new one if there is none.
func (ls Leases) at(id vicinity.ID) *participantRecord {
	if ls[id] == nil {
		ls[id] = &participantRecord{}
	}
	return ls[id]
}

// heard notes a sign of life of a participant. It reports whether its node was
// being started again, or was missed.
func (ls Leases) heard(now time.Time, from vicinity.ID) (returned bool) {
	k := ls[from]
	if k == nil {
		return false
	}
	returned = !k.expectedBack.IsZero() || k.silent
	k.lastContact, k.unverified, k.expectedBack, k.seenBack, k.silent = now, false, time.Time{}, time.Time{}, false
	return returned
}

// unheard begins all leases anew, since this node could not have heard anybody.
func (ls Leases) unheard(now time.Time) {
	for _, k := range ls {
		k.lastContact, k.unverified, k.progress, k.silent = now, true, now, false
	}
}

// gone shortens the lease of a node that the overlay has declared dead, unless the job has
// more patience than others; that of a node which has nothing to lose ends.
func (ls Leases) gone(now time.Time, id vicinity.ID, lease time.Duration, idle bool) {
	k := ls[id]
	if k == nil {
		return
	}
	k.seenBack = time.Time{}
	if k.unverified || now.Before(k.expectedBack) {
		return
	}
	if lease <= wire.PartLease {
		k.lastContact = timers.Earlier(k.lastContact, now.Add(goneGrace-lease))
	}
	if idle {
		k.lastContact = now.Add(-lease)
	}
}

// back notes that a node is a member of the overlay. One that was being started again
// and knows nothing of the job, as after a power failure, is not waited for any longer
// than it would need to report it. It reports whether that was news.
func (ls Leases) back(now time.Time, id vicinity.ID) bool {
	k := ls[id]
	if k == nil || k.expectedBack.IsZero() || !k.seenBack.IsZero() {
		return false
	}
	k.seenBack = now
	return true
}

// expected names a participant whose node is being started again, and when it is
// back at the latest; "" if there is none.
func (ls Leases) expected() (id vicinity.ID, back time.Time) {
	for _, id := range ls.nodes() {
		if back := ls[id].expectedBack; !back.IsZero() {
			return id, back
		}
	}
	return "", time.Time{}
}

// grantHolders bounds how many nodes a grant names that may have the inputs.
const grantHolders = 16

// holders lists nodes other than these two from which the job's inputs may be
// fetched.
func (ls Leases) holders(to, origin vicinity.ID) []vicinity.ID {
	nodes := slices.DeleteFunc(ls.nodes(), func(id vicinity.ID) bool { return id == to || id == origin })
	return append([]vicinity.ID{}, nodes[:min(len(nodes), grantHolders)]...)
}

// backBy returns when a node that was stopped before this one was is back at
// the latest, or zero. Clocks may have jumped since.
func backBy(now, back time.Time) time.Time {
	if !now.Before(back) {
		return time.Time{}
	}
	return timers.Earlier(back, now.Add(maxAway))
}

// forgotten compares a node's report with the ranks that it has, now and then,
// and returns which of them its reports have not named for a lease.
func (ls Leases) forgotten(now time.Time, from vicinity.ID, rep wire.Report, has []jobs.RankAttempt) (gone map[jobs.RankAttempt]bool) {
	k := ls[from]
	k.comparedAt = now
	gone = map[jobs.RankAttempt]bool{}
	named := make(map[jobs.RankAttempt]bool, len(rep.Workers))
	for _, w := range rep.Workers {
		named[w.RankAttempt] = true
	}
	missing := map[jobs.RankAttempt]time.Time{}
	for _, ra := range has {
		if named[ra] {
			continue
		}
		since, again := k.missingSince[ra]
		if !again {
			since = now
		}
		if missing[ra] = since; !now.Before(since.Add(wire.PartLease)) {
			gone[ra] = true
		}
	}
	k.missingSince = missing
	return gone
}

// progressed notes that a participant gets on.
func (ls Leases) progressed(now time.Time, id vicinity.ID) {
	if k := ls[id]; k != nil {
		k.progress = now
	}
}

// laidOut notes how much of the inputs a participant has laid out.
func (ls Leases) laidOut(now time.Time, from vicinity.ID, rep *wire.Report) {
	k := ls[from]
	if k == nil {
		return
	}
	laid := int64(0)
	for _, w := range rep.Workers {
		laid += w.Laid
	}
	if laid > k.laid {
		k.progress = now
	}
	k.laid = laid
}

// awayText names a participant whose node is being started again, or is "".
func (ls Leases) awayText(r *record.Record) string {
	id, back := ls.expected()
	if back.IsZero() {
		return ""
	}
	return fmt.Sprintf("node %s was stopped; its workers go on, and it is expected back by %s", jobs.Label(r.NameOf(id), id), back.Format("15:04:05 MST"))
}

// maxLate bounds how many nodes are named that a job waits for.
const maxLate = 3

// lateText reports since when nodes prepare the job's workers, and which are late with what.
func (ls Leases) lateText(now time.Time, r *record.Record, late map[vicinity.ID]string) string {
	var since time.Time
	for _, k := range ls {
		since = timers.Earlier(since, k.granted)
	}
	var names []string
	for _, id := range slices.Sorted(maps.Keys(late)) {
		if len(names) == maxLate {
			names = append(names, fmt.Sprintf("and %d more", len(late)-maxLate))
			break
		}
		names = append(names, jobs.Label(r.NameOf(id), id)+" "+late[id])
	}
	return fmt.Sprintf("after %s: %s", units.Span(now.Sub(since)), strings.Join(names, "; "))
}
