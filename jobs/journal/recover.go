package journal

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// recovered is what the logs have that the table has not.
type recovered struct {
	tail
	keep []string // logs that are damaged
}

// logOf is a log as it was found.
type logOf struct {
	logContent
	path   string
	number uint64
	bytes  []byte
}

// first is the number of its first transaction.
func (l *logOf) first() uint64 {
	if len(l.transactions) == 0 {
		return math.MaxUint64
	}
	return l.transactions[0].number
}

// recover reads the logs that are there. A transaction that was not completed is
// dropped, which is told; so is what is lost.
func (f *File) recover() (r recovered, err error) {
	logs, err := f.readLogs()
	if err != nil {
		return r, err
	}
	r.tail = *newTail()
	for _, l := range logs {
		r.files = append(r.files, l.path)
	}
	logs = slices.DeleteFunc(logs, func(l logOf) bool { return len(l.transactions) == 0 && l.rest == 0 })
	if f.found.keys == nil { // there was no table
		for _, l := range logs {
			r.keep = append(r.keep, l.path)
			for _, t := range l.transactions {
				r.last = max(r.last, t.number)
			}
		}
		return r, nil
	}
	supersede(logs)
	f.dropTorn(logs)
	last, known := f.found.applied, f.found.appliedKnown
	for i := range logs {
		for n := range logs[i].transactions {
			t := &logs[i].transactions[n]
			if t.number <= last {
				continue
			}
			if known && t.number != last+1 {
				f.lose("part of journal %s is damaged: %d transactions are lost, which may be of any job; the damaged part is kept beside it",
					f.path, t.number-last-1)
				r.keep = append(r.keep, logs[i].path)
			}
			last, known = t.number, true
			r.add(t.number, t.steps)
		}
	}
	return r, nil
}

// dropTorn takes what the last write left out of the logs if it was not completed: it
// was nobody's business yet. What is behind the last transaction of an earlier log is a
// write that failed, and that nobody was told of.
func (f *File) dropTorn(logs []logOf) {
	dropped := 0
	for i := len(logs) - 1; i >= 0; i-- {
		l := &logs[i]
		dropped += l.rest
		n := len(l.transactions)
		if n == 0 {
			continue
		}
		if t := &l.transactions[n-1]; len(t.damaged()) > 0 && t.torn(l.bytes) {
			dropped += t.size
			l.transactions = l.transactions[:n-1]
		}
		break
	}
	if dropped > 0 {
		f.lose("the end of journal %s was not complete (%d bytes): it is dropped; it was not confirmed to anybody", f.path, dropped)
	}
}

// supersede takes out of each log what a later one begins with: a write that failed
// may be found in the log, and what was written in its place is in the next.
func supersede(logs []logOf) {
	first := uint64(math.MaxUint64)
	for i := len(logs) - 1; i >= 0; i-- {
		l := &logs[i]
		l.transactions = slices.DeleteFunc(l.transactions, func(t transaction) bool { return t.number >= first })
		first = min(first, l.first())
	}
}

// readLogs reads the logs, in the order in which they were written. Those that were
// removed, which a power cut can bring back, count less than their numbers say.
func (f *File) readLogs() (logs []logOf, err error) {
	prefix := filepath.Base(f.path) + ".log-"
	entries, err := os.ReadDir(filepath.Dir(f.path))
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		digits, ok := strings.CutPrefix(e.Name(), prefix)
		number, err := strconv.ParseUint(digits, 10, 63)
		if !ok || err != nil || !e.Type().IsRegular() {
			continue
		}
		path := filepath.Join(filepath.Dir(f.path), e.Name())
		b, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		f.files = max(f.files, number)
		logs = append(logs, logOf{readLog(b), path, number, b})
	}
	slices.SortFunc(logs, func(a, b logOf) int {
		return cmp.Or(cmp.Compare(a.first(), b.first()), cmp.Compare(a.number, b.number))
	})
	return logs, nil
}

// dispose removes logs that are in the table, and keeps those that are damaged under
// another name.
func (f *File) dispose(r recovered) error {
	for _, path := range r.files {
		var err error
		if slices.Contains(r.keep, path) {
			_, err = keepDamaged(path)
		}
		if err == nil {
			err = f.medium.remove(path)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func damagedFile(path string, n int) string {
	if n == 1 {
		return path + ".damaged"
	}
	return fmt.Sprintf("%s.damaged-%d", path, n)
}

// keepDamaged gives a damaged file a second name, which none has yet.
func keepDamaged(path string) (kept string, err error) {
	for i := 1; ; i++ {
		kept = damagedFile(path, i)
		if err = os.Link(path, kept); !errors.Is(err, fs.ErrExist) {
			return kept, err
		}
	}
}
