// Package usage keeps how a node's slots were used in the last hour, in 120 bytes, and adds up
// what several nodes report of that: nobody has to ask them all the time.
//
// A Meter looks every few seconds and keeps the mean of each minute. What it tells, Lately,
// travels as shares of the node's slots, the last minute at the end: clocks need not agree.
// Sum adds up what several nodes have told.
package usage

import (
	"bufio"
	"context"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"zorilla/jobs/gpu"
)

// Minutes is how many minutes are remembered.
const Minutes = 60

const (
	lookEvery = 5 * time.Second
	whole     = 200 // what stands for all slots in a share
	maxLoad   = 1e6
)

// Lately is how a node is, and was in the last hour.
type Lately struct {
	// Of each minute, the last one at the end, in 200ths of the node's slots:
	Busy []byte `json:"busy,omitempty"` // used or held
	Shut []byte `json:"shut,omitempty"` // free, and not offered: the node is paused, draining or broken

	Load float64 `json:"load,omitempty"` // of the machine: mean number of programs that want to run, in the last minute
	Free int64   `json:"free,omitempty"` // bytes of the machine's memory that programs could get

	GPUs []gpu.Use `json:"gpus,omitempty"` // by number, as far as the node knows of them
}

// Sound reports whether it can be true of any node.
func (l *Lately) Sound() bool {
	if l == nil || len(l.Busy) > Minutes || len(l.Shut) != len(l.Busy) || math.IsNaN(l.Load) || l.Load < 0 || l.Load > maxLoad || l.Free < 0 {
		return false
	}
	if len(l.GPUs) > gpu.MaxUses || slices.ContainsFunc(l.GPUs, func(u gpu.Use) bool { return !u.Sound() }) {
		return false
	}
	for i := range l.Busy {
		if int(l.Busy[i])+int(l.Shut[i]) > whole {
			return false
		}
	}
	return true
}

// Look is how a node is at one moment.
type Look struct {
	Slots, Busy int
	Shut        bool
	Load        float64
	Free        int64
}

// Meter remembers. Its methods may be called from any goroutine; the zero value is ready.
type Meter struct {
	mu         sync.Mutex // guards what follows
	last       Look
	begun      time.Time // the minute that is not over
	busy, shut float64   // sums of shares in it
	looks      int
	past       [][2]byte // of the minutes before
}

// Note takes a look.
func (m *Meter) Note(now time.Time, l Look) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.looks > 0 && now.Sub(m.begun) >= time.Minute {
		m.past = append(m.past, m.mean())
		m.past = m.past[max(0, len(m.past)-Minutes+1):]
		m.busy, m.shut, m.looks = 0, 0, 0
	}
	if m.looks == 0 {
		m.begun = now
	}
	m.last = l
	m.looks++
	if l.Slots <= 0 {
		return
	}
	busy := min(1, max(0, float64(l.Busy)/float64(l.Slots)))
	m.busy += busy
	if l.Shut {
		m.shut += 1 - busy
	}
}

// mean is that of the minute that is not over.
func (m *Meter) mean() [2]byte {
	busy := math.Round(whole * m.busy / float64(m.looks))
	return [2]byte{byte(busy), byte(min(whole-busy, math.Round(whole*m.shut/float64(m.looks))))}
}

// Lately reports what is remembered; nil = nothing yet.
func (m *Meter) Lately() *Lately {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.looks == 0 {
		return nil
	}
	l := &Lately{Load: m.last.Load, Free: m.last.Free}
	for _, share := range append(m.past[:len(m.past):len(m.past)], m.mean()) {
		l.Busy, l.Shut = append(l.Busy, share[0]), append(l.Shut, share[1])
	}
	return l
}

// Watch looks until ctx ends.
func (m *Meter) Watch(ctx context.Context, look func() Look) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		m.Note(time.Now(), look())
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// Machine reads the load and the free memory of a machine, in a file system that begins at
// the root; 0 = it is not told.
func Machine(root fs.FS) (load float64, free int64) {
	if b, err := fs.ReadFile(root, "proc/loadavg"); err == nil {
		if _, err := fmt.Sscan(string(b), &load); err != nil || math.IsNaN(load) || load < 0 || load > maxLoad {
			load = 0
		}
	}
	f, err := root.Open("proc/meminfo")
	if err != nil {
		return load, 0
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "MemAvailable:"); ok {
			var kilobytes int64
			if _, err := fmt.Sscan(text, &kilobytes); err == nil && kilobytes > 0 && kilobytes < 1<<50 {
				return load, kilobytes << 10
			}
		}
	}
	return load, 0
}

// Part is what one of several nodes has told.
type Part struct {
	Slots  int
	Lately *Lately
}

// Total is how several nodes were used in each minute of the last hour, the last one at the
// end: slots, of those that told of that minute.
type Total [Minutes]struct{ Busy, Shut, All float64 }

// Sum adds nodes up.
func Sum(parts []Part) (t Total) {
	for _, p := range parts {
		if !p.Lately.Sound() || p.Slots <= 0 {
			continue
		}
		first := Minutes - len(p.Lately.Busy)
		for i, busy := range p.Lately.Busy {
			m := &t[first+i]
			m.All += float64(p.Slots)
			m.Busy += float64(p.Slots) * float64(busy) / whole
			m.Shut += float64(p.Slots) * float64(p.Lately.Shut[i]) / whole
		}
	}
	return t
}
