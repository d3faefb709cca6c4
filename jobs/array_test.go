package jobs

import (
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"zorilla/jobs/process"
)

func TestParseArray(t *testing.T) {
	for text, want := range map[string]struct {
		runs   []process.TaskIDs
		atOnce int
	}{
		"7":             {[]process.TaskIDs{{First: 7, Last: 7, Step: 1}}, 0},
		"1-10000%50":    {[]process.TaskIDs{{First: 1, Last: 10000, Step: 1}}, 50},
		"1-9:2,12,0":    {[]process.TaskIDs{{First: 1, Last: 9, Step: 2}, {First: 12, Last: 12, Step: 1}, {First: 0, Last: 0, Step: 1}}, 0},
		"1-10:4":        {[]process.TaskIDs{{First: 1, Last: 9, Step: 4}}, 0},
		"1-3,2":         {},
		"":              {},
		"5-1":           {},
		"1-3%0":         {},
		"1-3:0":         {},
		"4:2":           {},
		"-1":            {},
		"1-2-3":         {},
		"a":             {},
		"1-2000000":     {},
		"1073741825":    {},
		"1-9:2:2":       {},
		"1,,2":          {},
		"1-3%4%5":       {},
		"1-99999999999": {},
	} {
		runs, atOnce, err := ParseArray(text)
		if (err != nil) != (want.runs == nil) || err == nil && (!reflect.DeepEqual(runs, want.runs) || atOnce != want.atOnce) {
			t.Errorf("%q: %+v, %d, %v", text, runs, atOnce, err)
		}
		if err != nil && !strings.HasPrefix(err.Error(), "-a ") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestTaskRuns(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var ids []int
		for id, n := 0, rnd.IntN(30); len(ids) < n; {
			id += 1 + rnd.IntN(3)
			ids = append(ids, id)
		}
		numbers := process.NumberTasks(TaskRuns(ids))
		var got []int
		for i := range numbers.Count() {
			got = append(got, numbers.ID(i))
		}
		if !slices.Equal(got, ids) {
			t.Fatalf("%v became %v", ids, got)
		}
	}
}

// twin is what a task table must agree with: a list of who has what.
type twin struct {
	holder []RankAttempt // of each task; zero = nobody
	done   []bool
}

// Tasks are leased, done, lost and failed in all orders: none is leased twice,
// none is lost, and each counts once.
func TestTasksCountOnce(t *testing.T) {
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		spec := Spec{Array: &Array{Tasks: []process.TaskIDs{{First: 1, Last: 1 + rnd.IntN(200), Step: 1}}}, Retries: rnd.IntN(3)}
		table := newTaskTable(&spec)
		n := table.numbers.Count()
		w := twin{make([]RankAttempt, n), make([]bool, n)}
		attempts := [4]int{1, 1, 1, 1}
		for step := 0; !table.over(); step++ {
			if step > 100_000 {
				t.Fatalf("seed %d: it does not end", seed)
			}
			ra := RankAttempt{rnd.IntN(4), 0}
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
						w.holder[i] = RankAttempt{}
					}
				}
			case 1, 2, 3:
				for _, r := range table.choose(ra.Rank, 4) {
					for i := r.From; i < r.From+r.Count; i++ {
						if w.holder[i] != (RankAttempt{}) || w.done[i] {
							t.Fatalf("seed %d: task %d was leased twice", seed, i)
						}
						w.holder[i] = ra
					}
					table.lease(ra, []process.TaskRange{r})
				}
			default:
				l := table.leases[ra.Rank]
				if l == nil || l.left == 0 {
					continue
				}
				r := process.TaskResult{Place: l.queue[0].From, Code: rnd.IntN(2), Stdout: 3, Stderr: 2, Files: int64(rnd.IntN(3)), Took: time.Duration(rnd.IntN(1e9))}
				tried := table.tries[r.Place]
				report := &WorkerTasks{From: l.results, Results: packResults([]process.TaskResult{r})}
				if got := table.fresh(ra, report, l.wrote); len(got) != 0 {
					t.Fatalf("seed %d: a result came before its output", seed)
				}
				if got := table.fresh(ra, report, received{l.wrote.stdout + 2, l.wrote.stderr + 2 + r.Files}); len(got) != 0 {
					t.Fatalf("seed %d: a result came before all of its output", seed)
				}
				if got := table.fresh(ra, report, received{l.wrote.stdout + 3, l.wrote.stderr + 1 + r.Files}); len(got) != 0 {
					t.Fatalf("seed %d: a result came before its files", seed)
				}
				fresh := table.fresh(ra, report, received{l.wrote.stdout + 3, l.wrote.stderr + 2 + r.Files})
				table.ended(ra, fresh)
				if again := table.fresh(ra, report, received{1 << 40, 1 << 40}); len(again) != 0 {
					t.Fatalf("seed %d: a result came twice", seed)
				}
				w.holder[r.Place] = RankAttempt{}
				if r.Code == 0 || tried >= spec.Retries {
					w.done[r.Place] = true
				}
			}
			done, waits := 0, 0
			for i := range w.done {
				if w.done[i] {
					done++
				} else if w.holder[i] == (RankAttempt{}) {
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
		table := newTaskTable(&Spec{Array: &Array{Tasks: []process.TaskIDs{{First: 1, Last: n, Step: 1}}}})
		letters := make([]byte, n) // of each task
		for i := range letters {
			letters[i] = CellWaits
		}
		for rank := range 5 {
			ra := RankAttempt{rank, 1}
			for _, r := range table.choose(rank, 1+rnd.IntN(5)) {
				table.lease(ra, []process.TaskRange{r})
				for i := range r.Count {
					letters[r.From+i] = CellRuns
				}
			}
			for l := table.leases[rank]; l != nil && l.left > 0 && rnd.IntN(3) > 0; {
				place, code := l.queue[0].From, rnd.IntN(10)/9
				table.ended(ra, []process.TaskResult{{Place: place, Code: code, Took: time.Duration(rnd.IntN(1e6))}})
				letters[place] = []byte{CellDone, CellFailed}[code]
			}
		}
		got := table.picture(cells)
		cells = min(cells, n)
		want := make([]string, cells)
		for place, letter := range letters {
			want[place*cells/n] += string(letter)
		}
		for i, all := range want {
			letter := byte(CellWaits)
			switch {
			case strings.ContainsRune(all, CellFailed):
				letter = CellFailed
			case strings.Trim(all, string(CellDone)) == "":
				letter = CellDone
			case strings.ContainsRune(all, CellRuns):
				letter = CellRuns
			case strings.ContainsRune(all, CellDone):
				letter = CellPartly
			}
			if len(got) != cells || got[i] != letter {
				t.Fatalf("seed %d: cell %d of %q is not %c, for %q", seed, i, got, letter, all)
			}
		}
	}
}

func BenchmarkPicture(b *testing.B) {
	table := newTaskTable(&Spec{Array: &Array{Tasks: []process.TaskIDs{{First: 1, Last: 100_000, Step: 1}}}})
	for b.Loop() {
		table.picture(400)
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
	table := newTaskTable(&Spec{Array: &Array{Tasks: []process.TaskIDs{{First: 1, Last: n, Step: 1}}}})
	ra := RankAttempt{0, 1}
	for !table.over() {
		ranges := table.choose(0, 1)
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

func FuzzTaskResults(f *testing.F) {
	f.Add(packResults([]process.TaskResult{{Place: 3, Code: 7, Stdout: 5}, {Place: 1, Took: time.Second}, {Place: 9, Code: 255, Files: 1 << 40}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		rs, err := unpackResults(b)
		if err != nil {
			return
		}
		again, err := unpackResults(packResults(rs))
		if err != nil || !reflect.DeepEqual(again, rs) {
			t.Fatalf("%+v became %+v, %v", rs, again, err)
		}
	})
}
