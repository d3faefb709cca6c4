package launch

import (
	"time"

	"zorilla/jobs/proc"
)

// The pace of the watchdog: often enough that a command which fills memory at fillRate
// is seen before it is far over its limit, and never more than a twentieth of a core.
const (
	fillRate    = 8 << 30 // bytes per second
	watchAtMost = 100 * time.Millisecond
	watchLeast  = 5 * time.Millisecond
	watchShare  = 20
	filesEvery  = 500 * time.Millisecond // how often files in memory are looked for
)

// watchMemory reports which commands need more memory than they may, and keeps the
// highest sum of each. It returns when there are none.
//
// What counts is memory that cannot be dropped: anonymous, shared and swapped pages,
// and files that are in memory, mapped or not; not mapped files of a disk. The cheap
// sum counts shared pages several times, so what is over the limit by that sum is
// measured again by shares.
func (l *launcher) watchMemory() {
	var files int64
	var looked time.Time
	for {
		begin := time.Now()
		l.mu.Lock()
		if len(l.runs) == 0 {
			l.watch = false
			l.mu.Unlock()
			return
		}
		members := l.members()
		if time.Since(looked) > filesEvery {
			files, looked = 0, begin
			for _, pids := range members {
				files += proc.MemoryFiles(pids)
			}
		}
		kept := files
		if l.world.Namespaces {
			kept += l.inside.Used() + proc.SharedSegments()
		}
		room := int64(fillRate)
		for n, w := range l.runs {
			if w.memory <= 0 || w.told {
				continue
			}
			used := need(members[n], kept/int64(len(l.runs)), w.memory)
			w.used.Peak = max(w.used.Peak, used)
			room = min(room, w.memory-used)
			if used > w.memory {
				w.told = true
				l.report(report{Op: opExceeded, Number: n, Serial: w.serial})
			}
		}
		l.mu.Unlock()
		pace := time.Duration(float64(room) / fillRate * float64(time.Second))
		time.Sleep(max(min(pace, watchAtMost), watchLeast, watchShare*time.Since(begin)))
	}
}

// need is how much memory processes need with their share of what is kept in files.
func need(pids []int, kept, limit int64) int64 {
	var own proc.Memory
	for _, pid := range pids {
		own.Add(proc.Resident(pid))
	}
	if own.Private+max(own.Shared, kept) > limit {
		own = proc.Proportional(pids)
	}
	return own.Private + max(own.Shared, kept)
}
