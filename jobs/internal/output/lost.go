package output

import (
	"cmp"
	"fmt"
	"slices"

	"zorilla/jobs"
	"zorilla/jobs/internal/record"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/work"
)

// hole is bytes of a stream that the disk lost.
type hole struct {
	StreamOf
	from, to int64
}

// note keeps in mind what was found to be lost.
func (w *File) note(h hole) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if h.from < h.to && !slices.Contains(w.lost, h) {
		w.lost = append(w.lost, h)
	}
}

// missing notes what somebody who has read the whole file was not told of what was
// in it before.
func (w *File) missing(had map[jobs.RankAttempt]wire.Written, told map[StreamOf]int64, want func(jobs.RankAttempt) bool) {
	for ra, got := range had {
		for _, st := range []work.Stream{work.Stdout, work.Stderr} {
			if key := (StreamOf{ra, st}); want(ra) {
				w.note(hole{key, told[key], got.Of(st)})
			}
		}
	}
}

// Expect compares what was found in the file with what the job's journal tells
// of it.
func (w *File) Expect(rec *record.Record) {
	expect := func(ra jobs.RankAttempt, wrote *wire.Written) {
		if wrote != nil {
			had := map[jobs.RankAttempt]wire.Written{ra: *wrote}
			got := w.Received([]jobs.RankAttempt{ra})[ra]
			w.missing(had, map[StreamOf]int64{{ra, work.Stdout}: got.Stdout, {ra, work.Stderr}: got.Stderr}, func(jobs.RankAttempt) bool { return true })
		}
	}
	for i := range rec.Ranks {
		expect(jobs.RankAttempt{Rank: i, Attempt: rec.Ranks[i].Attempt}, rec.Ranks[i].Wrote)
	}
	for _, k := range rec.Kept {
		expect(k.RankAttempt, k.Wrote)
	}
	size, _, _ := w.Spool.State()
	w.mu.Lock()
	w.blind += max(0, rec.Stored-size)
	w.mu.Unlock()
}

// MaxDamage bounds how much damage is told of one job.
const MaxDamage = 20

// Damage lists what the disk lost of a job's output that counts: of one worker,
// or of all (-1).
func (w *File) Damage(rec *record.Record, worker int) []string {
	return w.damage(rec, rec.KnowsOutput(worker), func(ra jobs.RankAttempt) bool {
		return (worker < 0 || ra.Rank == worker) && rec.CountsOutput(ra)
	})
}

// DamageOf lists what the disk lost of the output of attempts, which need not count.
func (w *File) DamageOf(rec *record.Record, which func(jobs.RankAttempt) bool) []string {
	return w.damage(rec, false, which)
}

// damage lists what the disk lost of the output of some workers, of all of which it is known how
// much they wrote, or not.
func (w *File) damage(rec *record.Record, known bool, which func(jobs.RankAttempt) bool) (list []string) {
	w.mu.Lock()
	lost, blind := slices.Clone(w.lost), w.blind
	w.mu.Unlock()
	if len(lost) == 0 && blind == 0 {
		return nil
	}
	slices.SortFunc(lost, func(a, b hole) int {
		return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Stream, b.Stream), cmp.Compare(a.from, b.from))
	})
	for _, h := range lost {
		if which(h.RankAttempt) {
			list = append(list, fmt.Sprintf("%s: %s: bytes %d to %d", rec.Spec.Who(h.Rank), StreamName(h.Stream), h.from, h.to-1))
		}
	}
	if blind > 0 && !known {
		list = append(list, fmt.Sprintf("%d bytes of its output file, whose rank is not known", blind))
	}
	if more := len(list) - MaxDamage; more > 0 {
		list = append(list[:MaxDamage], fmt.Sprintf("and %d more", more))
	}
	return list
}

// StreamName names a stream for people.
func StreamName(st work.Stream) string {
	switch st {
	case work.Stderr:
		return "standard error"
	case work.Files:
		return "files"
	}
	return "standard output"
}
