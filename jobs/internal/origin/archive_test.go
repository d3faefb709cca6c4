package origin

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unsafe"

	"zorilla/jobs"
	"zorilla/jobs/internal/record"
	"zorilla/transfer"
	"zorilla/vicinity"
)

// endedJob is a job of a retention test: when it ended, how much it left, and when
// somebody read that, in hours.
type endedJob struct {
	at, size int64
	read     float64 // 0 = never
	tree     byte    // 0 = no inputs
	forgot   bool    // its results are forgotten
}

const home0 = vicinity.ID("zeb2a")

func numbered(i int) jobs.ID { return jobs.ID(fmt.Sprintf("%05d", i)).At(home0) }

func TestRetention(t *testing.T) {
	const day, week = 24, 7 * 24
	for _, c := range []struct {
		name    string
		keepFor int64 // hours; 0 = the default
		limit   int64
		jobs    []endedJob
		now     int64
		forget  string // numbers of jobs
		drop    string
		trees   int // that are let go
		full    bool
	}{
		{name: "nothing is due", jobs: []endedJob{{at: 0, size: 5}, {at: 1, size: 5}}, now: week - 1},
		{name: "older than a week", jobs: []endedJob{{at: 0, size: 5}, {at: 1}, {at: 2, size: 5, read: 3}}, now: week + 1, forget: "0 1"},
		{name: "never by count", jobs: make([]endedJob, 5000), now: week - 1},
		{name: "the record lives ten times as long", jobs: []endedJob{{at: 0, forgot: true}, {at: week, forgot: true}}, now: 10 * week, drop: "0"},
		{name: "what is forgotten now keeps its record", jobs: []endedJob{{at: 0}}, now: 9 * week, forget: "0"},
		{name: "the oldest makes room", limit: 10, jobs: []endedJob{{at: 0, size: 5}, {at: 1, size: 5}, {at: 2, size: 5}}, now: 2 * day, forget: "0"},
		{name: "what left nothing makes no room", limit: 10, jobs: []endedJob{{at: 0}, {at: 1, size: 5}, {at: 2, size: 6}}, now: 2 * day, forget: "1"},
		{name: "unread within a day, though there is no room", limit: 10, jobs: []endedJob{{at: 0, size: 50}, {at: 1, size: 50}}, now: day - 1, full: true},
		{name: "unread, but a day old", limit: 10, jobs: []endedJob{{at: 0, size: 50}, {at: 1, size: 5}}, now: day, forget: "0"},
		{name: "read an hour ago", limit: 10, jobs: []endedJob{{at: 0, size: 50}, {at: 1, size: 50, read: 2}}, now: 3, forget: "1", full: true},
		{name: "read just now: the files may still be fetched", limit: 10, jobs: []endedJob{{at: 0, size: 50, read: 2.5}}, now: 3, full: true},
		{name: "shorter than a day: unread", keepFor: 2, jobs: []endedJob{{at: 0, size: 5}}, now: 20},
		{name: "shorter than a day: read", keepFor: 2, jobs: []endedJob{{at: 0, size: 5, read: 0.5}, {at: 0, size: 5, read: 2.5}}, now: 3, forget: "0"},
		{name: "inputs go before results", limit: 10, jobs: []endedJob{{at: 0, size: 5, tree: 20}, {at: 1, size: 5}}, now: 2 * day, trees: 1},
		{name: "inputs of several jobs count once", limit: 20, jobs: []endedJob{{at: 0, size: 1, tree: 17}, {at: 1, size: 1, tree: 17}, {at: 2, size: 1, tree: 17}}, now: 2 * day},
		{name: "inputs go with the last job that had them", jobs: []endedJob{{at: 0, tree: 9}, {at: 0, tree: 9}, {at: 20, tree: 8}}, now: week, forget: "0 1", trees: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			start := time.Unix(1e9, 0)
			hours := func(h float64) time.Time { return start.Add(time.Duration(h * float64(time.Hour))) }
			a := newArchive(home0, time.Duration(c.keepFor)*time.Hour, c.limit)
			for i, e := range c.jobs {
				p := &record.Past{ID: numbered(i), State: jobs.Completed, Ended: hours(float64(e.at)).UnixNano(), Size: e.size}
				if e.forgot {
					p.Forgotten = 1
				}
				var tree transfer.Hash
				tree[0] = e.tree
				a.add(hours(float64(e.at)), p, tree, int64(e.tree))
				if e.read != 0 {
					a.sawRead(hours(e.read), p.ID)
				}
			}
			now := hours(float64(c.now))
			if c.forget+c.drop != "" && (a.next.IsZero() || now.Before(a.next)) {
				t.Errorf("it would not have been looked at before %v", a.next.Sub(start))
			}
			forget, drop := a.sweep(now)
			names := func(list []row) string {
				var s []string
				for _, r := range list {
					s = append(s, strings.TrimLeft(string(r.name[:4]), "0")+string(r.name[4:]))
				}
				return strings.Join(s, " ")
			}
			if got := names(forget); got != c.forget {
				t.Errorf("forgets %q, want %q", got, c.forget)
			}
			if got := names(drop); got != c.drop {
				t.Errorf("drops %q, want %q", got, c.drop)
			}
			if a.results().Full != c.full {
				t.Errorf("over its limit is %v, want %v", a.full, c.full)
			}
			for _, r := range forget {
				a.forget(now, r)
			}
			if len(a.loose) != c.trees {
				t.Errorf("let %d trees go, want %d", len(a.loose), c.trees)
			}
			a.remove(drop)
			checkArchive(t, &a)
			if f, d := a.sweep(now); len(f)+len(d) > 0 {
				t.Errorf("once more: forgets %q, drops %q", names(f), names(d))
			}
			if !a.next.IsZero() && a.next.Before(now.Add(sweepPause)) {
				t.Errorf("it wants to look again after %v", a.next.Sub(now))
			}
		})
	}
}

// checkArchive compares what an archive counts with what is in it.
func checkArchive(t *testing.T, a *archive) {
	t.Helper()
	var bytes, extra int64
	gone := 0
	users := map[uint32]int{}
	for i := range a.order {
		r := &a.order[i]
		if a.find(r.id(home0)) != r || i > 0 && byEnd(a.order[i-1], *r) >= 0 {
			t.Fatalf("record %d is out of order, or not the one that is found", i)
		}
		if p := a.near[r.id(home0)]; p != nil && (p.Ended != r.ended || p.Size != r.size || (p.Forgotten != 0) != r.forgotten() || p.State != r.state()) || p == nil && i >= len(a.order)-keepNear {
			t.Fatalf("record %d is %+v, and in lists %+v", i, r, p)
		}
		if bytes += r.size; r.forgotten() {
			gone++
		}
		users[r.tree]++
	}
	for _, tree := range a.trees {
		if a.number[tree.number] != tree || tree.jobs != users[tree.number] {
			t.Fatalf("inputs %+v have %d jobs", tree, users[tree.number])
		}
		if tree.here {
			extra += tree.size
		}
	}
	if len(a.near) > min(keepNear, len(a.order)) || len(a.number) != len(a.trees) || bytes != a.bytes || gone != a.gone || extra != a.extra {
		t.Fatalf("%d records, %d of them near, %d and %d bytes, %d and %d without results, %d and %d bytes of inputs", len(a.order), len(a.near), a.bytes, bytes, a.gone, gone, a.extra, extra)
	}
}

// An archive is used as a service does, with jobs that end, change, are read,
// removed and forgotten in any order: its sums hold, no room is wasted while
// results are forgotten for the lack of it, and none that are protected go.
func TestRetentionOfAnyHistory(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		now := time.Unix(1e9, 0)
		a := newArchive(home0, time.Duration(1+rnd.IntN(100))*time.Hour, int64(rnd.IntN(200)))
		for i := range 300 {
			now = now.Add(time.Duration(rnd.IntN(120)) * time.Minute)
			switch id := numbered(rnd.IntN(i + 1)); rnd.IntN(4) {
			case 0:
				a.sawRead(now, id)
			case 1:
				if r := a.find(id); r != nil {
					a.forget(now, *r)
					a.remove([]row{*r})
				}
			default:
				var tree transfer.Hash
				tree[0] = byte(rnd.IntN(3))
				a.add(now, &record.Past{ID: numbered(i), State: jobs.Failed, Ended: now.UnixNano(), Size: int64(rnd.IntN(30))}, tree, 10*int64(tree[0]))
			}
			if a.next.IsZero() || now.Before(a.next) {
				continue
			}
			forget, drop := a.sweep(now)
			for _, r := range forget {
				if now.Before(r.least()) {
					t.Fatalf("seed %d: results are forgotten %v before they may be", seed, r.least().Sub(now))
				}
				a.forget(now, r)
			}
			a.remove(drop)
			if a.limit > 0 && a.bytes+a.extra > a.limit && !a.full {
				t.Fatalf("seed %d: %d and %d bytes are kept, of %d", seed, a.bytes, a.extra, a.limit)
			}
			a.loose = nil
			checkArchive(t, &a)
		}
	}
}

// What a job costs in memory once it is not there as a whole any more, and, of the youngest,
// what lists have of it.
func TestRecordIsSmall(t *testing.T) {
	if n := unsafe.Sizeof(row{}); n > 32 {
		t.Errorf("a row has %d bytes", n)
	}
	args := strings.Fields(strings.Repeat("/usr/bin/program --option ", 4000))
	p := record.PastOf(&record.Record{ID: "aaaaa@zeb2a", Lineup: record.Lineup{Spec: jobs.Spec{Args: args, Min: 1, Max: 1}}, State: jobs.Failed, Reason: strings.Repeat("rank 0 ended ", 100), Ended: time.Now()})
	if n := int(unsafe.Sizeof(*p)) + len(p.Name) + len(p.Reason); n > 400 {
		t.Errorf("the largest record has %d bytes", n)
	}
	p.Forgotten = 1
	if !p.Sound() {
		t.Error("it would not be read again")
	}
	if p.Name[:16] != "program --option" {
		t.Errorf("its name is %q", p.Name)
	}
}
