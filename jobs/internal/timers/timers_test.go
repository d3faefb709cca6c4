package timers

import (
	"runtime"
	"testing"
	"time"
	"weak"
)

type timed struct{ Entry }

// What is taken out does not stay in memory, however many there were.
func TestRemovedIsForgotten(t *testing.T) {
	var a Queue[*timed]
	var list []*timed
	var weakly []weak.Pointer[timed]
	for i := range 5000 {
		e := &timed{}
		list, weakly = append(list, e), append(weakly, weak.Make(e))
		a.Set(e, time.Unix(int64(i*7919%5000), 0))
	}
	for _, e := range list[1:] {
		a.Remove(e)
	}
	first := list[0]
	list = nil
	runtime.GC()
	left := 0
	for _, w := range weakly {
		if w.Value() != nil {
			left++
		}
	}
	if left != 1 || a.Len() != 1 || cap(a.List) > 1000 {
		t.Errorf("%d of 5000 are in memory, %d in a list for %d, after all but one were removed", left, a.Len(), cap(a.List))
	}
	runtime.KeepAlive(first)
}
