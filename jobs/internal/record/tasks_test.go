package record

import (
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/process"
	"zorilla/jobs/work"
)

// twin is what a task table must agree with: a list of who has what.
type twin struct {
	holder []jobs.RankAttempt // of each task; zero = nobody
	done   []bool
}

// Tasks are leased, done, lost and failed in all orders: none is leased twice,
// none is lost, and each counts once.
func TestTasksCountOnce(t *testing.T) {
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		spec := jobs.Spec{Array: &jobs.Array{Tasks: []work.TaskIDs{{First: 1, Last: 1 + rnd.IntN(200), Step: 1}}}, Failing: jobs.Failing{Retries: rnd.IntN(3)}}
		table := newTaskTable(&spec)
		n := table.Numbers.Count()
		w := twin{make([]jobs.RankAttempt, n), make([]bool, n)}
		attempts := [4]int{1, 1, 1, 1}
		errors := map[jobs.RankAttempt]int64{} // bytes
		for step := 0; !table.over(); step++ {
			if step > 100_000 {
				t.Fatalf("seed %d: it does not end", seed)
			}
			ra := jobs.RankAttempt{Rank: rnd.IntN(4), Attempt: 0}
			ra.Attempt = attempts[ra.Rank]
			switch rnd.IntN(8) {
			case 0: // lost, or stopped
				if step > 2000 {
					continue
				}
				table.free(ra.Rank)
				attempts[ra.Rank]++
				for i := range w.holder {
					if w.holder[i] == ra {
						w.holder[i] = jobs.RankAttempt{}
					}
				}
			case 1, 2, 3:
				for _, r := range table.Choose(ra.Rank, 4) {
					for i := r.From; i < r.From+r.Count; i++ {
						if w.holder[i] != (jobs.RankAttempt{}) || w.done[i] {
							t.Fatalf("seed %d: task %d was leased twice", seed, i)
						}
						w.holder[i] = ra
					}
					table.lease(ra, []process.TaskRange{r})
				}
			default:
				l := table.Leases[ra.Rank]
				if l == nil || l.Left == 0 {
					continue
				}
				r := process.TaskResult{Place: l.queue[0].From, Code: rnd.IntN(2), Stdout: 3, Stderr: 2, Files: int64(rnd.IntN(3)), Took: time.Duration(rnd.IntN(1e9))}
				tried := table.Tries[r.Place]
				report := &wire.WorkerTasks{From: l.Results, Results: wire.PackResults([]process.TaskResult{r})}
				if got := table.Fresh(ra, report, l.wrote); len(got) != 0 {
					t.Fatalf("seed %d: a result came before its output", seed)
				}
				if got := table.Fresh(ra, report, wire.Written{Stdout: l.wrote.Stdout + 2, Stderr: l.wrote.Stderr + 2 + r.Files}); len(got) != 0 {
					t.Fatalf("seed %d: a result came before all of its output", seed)
				}
				if got := table.Fresh(ra, report, wire.Written{Stdout: l.wrote.Stdout + 3, Stderr: l.wrote.Stderr + 1 + r.Files}); len(got) != 0 {
					t.Fatalf("seed %d: a result came before its files", seed)
				}
				fresh := table.Fresh(ra, report, wire.Written{Stdout: l.wrote.Stdout + 3, Stderr: l.wrote.Stderr + 2 + r.Files})
				table.ended(ra, fresh)
				if errors[ra] += r.Stderr; table.Stderr(ra) != errors[ra] {
					t.Fatalf("seed %d: rank %d wrote %d bytes to standard error, want %d", seed, ra.Rank, table.Stderr(ra), errors[ra])
				}
				if again := table.Fresh(ra, report, wire.Written{Stdout: 1 << 40, Stderr: 1 << 40}); len(again) != 0 {
					t.Fatalf("seed %d: a result came twice", seed)
				}
				w.holder[r.Place] = jobs.RankAttempt{}
				if r.Code == 0 || tried >= spec.Retries {
					w.done[r.Place] = true
				}
			}
			done, waits := 0, 0
			for i := range w.done {
				if w.done[i] {
					done++
				} else if w.holder[i] == (jobs.RankAttempt{}) {
					waits++
				}
			}
			if done != table.done || waits != table.waits {
				t.Fatalf("seed %d, step %d: %d done, %d wait; want %d, %d", seed, step, table.done, table.waits, done, waits)
			}
		}
	}
}

// A picture is what a look at each task says.
func TestPicture(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		n, cells := 1+rnd.IntN(300), 1+rnd.IntN(100)
		table := newTaskTable(&jobs.Spec{Array: &jobs.Array{Tasks: []work.TaskIDs{{First: 1, Last: n, Step: 1}}}})
		letters := make([]byte, n) // of each task
		for i := range letters {
			letters[i] = jobs.CellWaits
		}
		for rank := range 5 {
			ra := jobs.RankAttempt{Rank: rank, Attempt: 1}
			for _, r := range table.Choose(rank, 1+rnd.IntN(5)) {
				table.lease(ra, []process.TaskRange{r})
				for i := range r.Count {
					letters[r.From+i] = jobs.CellRuns
				}
			}
			for l := table.Leases[rank]; l != nil && l.Left > 0 && rnd.IntN(3) > 0; {
				place, code := l.queue[0].From, rnd.IntN(10)/9
				table.ended(ra, []process.TaskResult{{Place: place, Code: code, Took: time.Duration(rnd.IntN(1e6))}})
				letters[place] = []byte{jobs.CellDone, jobs.CellFailed}[code]
			}
		}
		for place, letter := range letters {
			want := map[byte]jobs.TaskState{jobs.CellWaits: jobs.TaskWaiting, jobs.CellRuns: jobs.TaskWaiting, jobs.CellDone: jobs.TaskDone, jobs.CellFailed: jobs.TaskFailed}[letter]
			for _, l := range table.Leases {
				if l.Left > 0 && l.queue[0].From == place {
					want = jobs.TaskRunning
				}
			}
			if got := table.States()(place); got != want {
				t.Fatalf("seed %d: task %d is %s, want %s", seed, place, got, want)
			}
		}
		got := table.Picture(cells)
		cells = min(cells, n)
		want := make([]string, cells)
		for place, letter := range letters {
			want[place*cells/n] += string(letter)
		}
		for i, all := range want {
			letter := byte(jobs.CellWaits)
			switch {
			case strings.ContainsRune(all, jobs.CellFailed):
				letter = jobs.CellFailed
			case strings.Trim(all, string(jobs.CellDone)) == "":
				letter = jobs.CellDone
			case strings.ContainsRune(all, jobs.CellRuns):
				letter = jobs.CellRuns
			case strings.ContainsRune(all, jobs.CellDone):
				letter = jobs.CellPartly
			}
			if len(got) != cells || got[i] != letter {
				t.Fatalf("seed %d: cell %d of %q is not %c, for %q", seed, i, got, letter, all)
			}
		}
	}
}

func BenchmarkPicture(b *testing.B) {
	table := newTaskTable(&jobs.Spec{Array: &jobs.Array{Tasks: []work.TaskIDs{{First: 1, Last: 100_000, Step: 1}}}})
	for b.Loop() {
		table.Picture(400)
	}
}

// An origin needs less than a kilobyte for a task.
func TestTaskTableIsSmall(t *testing.T) {
	const n = 100_000
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	table := newTaskTable(&jobs.Spec{Array: &jobs.Array{Tasks: []work.TaskIDs{{First: 1, Last: n, Step: 1}}}})
	ra := jobs.RankAttempt{Rank: 0, Attempt: 1}
	for !table.over() {
		ranges := table.Choose(0, 1)
		table.lease(ra, ranges)
		var rs []process.TaskResult
		for _, r := range ranges {
			for i := range r.Count {
				rs = append(rs, process.TaskResult{Place: r.From + i, Code: 1, Files: 100, Took: time.Millisecond})
			}
		}
		table.ended(ra, rs)
	}
	per := float64(heap()-before) / n
	t.Logf("%.0f bytes a task", per)
	if per > 1000 {
		t.Errorf("%.0f bytes a task, want less than 1000", per)
	}
	runtime.KeepAlive(table)
}

// Of tries that were followed by others the last ones are known, with where they wrote, and when
// they ended among the tasks that ended for good.
func TestTriesThatFailed(t *testing.T) {
	tries, tasks := jobs.MaxRetries, jobs.MaxTried/jobs.MaxRetries+1
	table := newTaskTable(&jobs.Spec{Array: &jobs.Array{Tasks: []work.TaskIDs{{First: 1, Last: tasks, Step: 1}}}, Failing: jobs.Failing{Retries: tries}})
	ra, n := jobs.RankAttempt{Rank: 2, Attempt: 3}, 0
	for place := range tasks {
		for number := 1; number <= tries+1; number++ {
			table.lease(ra, []process.TaskRange{{From: place, Count: 1}})
			table.ended(ra, []process.TaskResult{{Place: place, Code: 7, Stdout: 10, Stderr: 2, Files: 1}})
			if n++; number > tries {
				continue
			}
			want := Try{Task{From: wire.Written{Stdout: int64(n-1) * 10, Stderr: int64(n-1) * 3}, Wrote: wire.Written{Stdout: 10, Stderr: 2}, Files: 1, Rank: 2, Try: 3, Code: 7, Done: true}, place, number, place}
			if got := table.Tried[len(table.Tried)-1]; got != want {
				t.Fatalf("got %+v, want %+v", got, want)
			}
		}
	}
	if first := table.Tried[0]; len(table.Tried) != jobs.MaxTried || first.Place != 1 || first.Number != 1 {
		t.Errorf("%d are known, from try %d of task %d on", len(table.Tried), first.Number, first.Place)
	}
}
