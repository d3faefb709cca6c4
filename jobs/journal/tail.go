package journal

import (
	"fmt"
	"slices"
	"sync"
)

// stored is an entry as it is stored, under its number.
type stored struct {
	seq    uint64
	record []byte
}

// place is where a key has got to.
type place struct {
	total uint64 // how many entries there must be
	born  uint64 // stamp of the first
}

// kept is what is stored of one key.
type kept struct {
	place
	records []stored
}

// entries returns the entries up to the first that is damaged or missing, and then
// one that says so.
func (k *kept) entries(key string) (entries []Entry) {
	damage := func(format string, args ...any) []Entry {
		return append(entries, Entry{Key: key, Damage: fmt.Sprintf(format, args...)})
	}
	born, n := uint64(0), uint64(0)
	entries = make([]Entry, 0, len(k.records)+1)
	for _, s := range k.records {
		r, size := parseRecord(s.record)
		if n++; s.seq != n {
			return damage("entry %d of %d is missing", n, max(k.total, n))
		}
		if size == 0 || size != len(s.record) || r.key != key || r.seq != n || n > 1 && r.born != born {
			return damage("entry %d of %d is damaged", n, max(k.total, n))
		}
		born = r.born
		entries = append(entries, Entry{Key: key, Data: append([]byte{}, r.data...)})
	}
	if n != k.total {
		return damage("%d entries are there of %d", n, k.total)
	}
	return entries
}

// tail is what the transactions of one log make of the table.
type tail struct {
	files []string // where it is on disk
	last  uint64   // number of the last transaction
	keys  map[string]*keyTail
}

// keyTail is what a log has of one key.
type keyTail struct {
	removed uint64 // number of the last transaction that removed the key; 0 = none
	records []stored
}

func newTail() *tail { return &tail{keys: map[string]*keyTail{}} }

func (t *tail) add(number uint64, steps []step) {
	t.last = number
	for _, s := range steps {
		k := t.keys[s.key]
		if k == nil {
			k = &keyTail{}
			t.keys[s.key] = k
		}
		if s.seq == 0 {
			k.removed, k.records = number, nil
			continue
		}
		k.records = append(k.records, stored{s.seq, s.record})
	}
}

// after returns where the key gets to, and which records are new there. To a
// table that has the tail already nothing is new, so that it can be applied again.
func (k *keyTail) after(p place) (next place, removes bool, news []stored) {
	if k.removed != 0 && p.born <= k.removed { // else it has begun anew since
		removes, p = true, place{}
	}
	for i, s := range k.records {
		if s.seq > p.total || bornOf(s.record) != p.born {
			news = k.records[i:]
			break
		}
	}
	if len(news) > 0 && p.total == 0 {
		p.born = bornOf(news[0].record)
	}
	for _, s := range news {
		p.total = max(p.total, s.seq)
	}
	return p, removes, news
}

// onto adds the tail to what is stored of the key before it.
func (k *keyTail) onto(old kept) kept {
	next, removes, news := k.after(old.place)
	if removes {
		old.records = nil
	}
	return kept{next, append(old.records, news...)}
}

// tails are the logs whose transactions are not all in the table, the one that is
// written last. The mutex guards all of them; the writer alone adds to the last.
type tails struct {
	mu   sync.Mutex
	list []*tail
}

// add notes a transaction in the last log.
func (t *tails) add(number uint64, steps []step) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.list[len(t.list)-1].add(number, steps)
}

// begin notes that another log is written from now on.
func (t *tails) begin(file string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := len(t.list); n == 0 || len(t.list[n-1].keys) > 0 {
		t.list = append(t.list, newTail())
	}
	last := t.list[len(t.list)-1]
	last.files = append(last.files, file)
}

// waiting returns how many logs are not written any more.
func (t *tails) waiting() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return max(0, len(t.list)-1)
}

// oldest returns the first log, nil if there are only so many.
func (t *tails) oldest(left int) *tail {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.list) <= left {
		return nil
	}
	return t.list[0]
}

// drop forgets the first log, which is in the table now.
func (t *tails) drop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.list = slices.Delete(t.list, 0, 1)
}

// copy returns all logs as they are now, the oldest first.
func (t *tails) copy() (all []*tail) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, log := range t.list {
		c := &tail{last: log.last, keys: map[string]*keyTail{}}
		for key, k := range log.keys {
			now := *k
			c.keys[key] = &now
		}
		all = append(all, c)
	}
	return all
}

// of returns what the logs have of one key, as copy does.
func (t *tails) of(key string) (all []*tail) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, log := range t.list {
		if k := log.keys[key]; k != nil {
			now := *k
			all = append(all, &tail{last: log.last, keys: map[string]*keyTail{key: &now}})
		}
	}
	return all
}
