package jobs

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"zorilla/jobs/work"
)

func TestParseArray(t *testing.T) {
	for text, want := range map[string]struct {
		runs   []work.TaskIDs
		atOnce int
	}{
		"7":             {[]work.TaskIDs{{First: 7, Last: 7, Step: 1}}, 0},
		"1-10000%50":    {[]work.TaskIDs{{First: 1, Last: 10000, Step: 1}}, 50},
		"1-9:2,12,0":    {[]work.TaskIDs{{First: 1, Last: 9, Step: 2}, {First: 12, Last: 12, Step: 1}, {First: 0, Last: 0, Step: 1}}, 0},
		"1-10:4":        {[]work.TaskIDs{{First: 1, Last: 9, Step: 4}}, 0},
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
		numbers := work.NumberTasks(TaskRuns(ids))
		var got []int
		for i := range numbers.Count() {
			got = append(got, numbers.ID(i))
		}
		if !slices.Equal(got, ids) {
			t.Fatalf("%v became %v", ids, got)
		}
	}
}
