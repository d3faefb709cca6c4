package core

import (
	"fmt"
	"testing"
	"time"

	"zorilla/flood"
	"zorilla/jobs"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/internal/wire/wiretest"
	"zorilla/vicinity"
)

// lone is a node with one slot that is alone, until others come.
type lone struct {
	*pair
	size int
	ads  map[jobs.ID]int
	all  int
	acts int // how often it is woken
}

func (l *lone) Size() int { return l.size }

func (l *lone) Flood(_ time.Time, _ int, ad wire.Advertisement) (f flood.Flood) {
	l.ads[ad.Job]++
	l.all++
	return f
}

// crowded is a lone node whose slot is taken, with jobs that wait for it.
func crowded(t *testing.T, waiting int) (l *lone, queue []jobs.ID) {
	l = &lone{pair: newPair(t), size: 1, ads: map[jobs.ID]int{}}
	l.core = New(vicinity.Member{ID: jobtest.Node(1), Slots: 1}, l, jobtest.Rand(), time.Hour)
	l.core.Claims.Used.Slots = 1
	for range waiting {
		queue = append(queue, l.submit(1, 1))
	}
	return l, queue
}

// idle lets time pass, and the node is woken when it wants to be.
func (l *lone) idle(d time.Duration) {
	for end := l.now.Add(d); ; {
		at := l.core.Wake()
		if at.IsZero() || at.After(end) {
			l.now = end
			return
		}
		if at.After(l.now) {
			l.now = at
		}
		l.acts++
		l.act()
	}
}

// Jobs that wait at a node which is alone and full do not ask it again and again: its queue has them, for
// as long as they wait, and the first of them gets the slot at once when it is free.
func TestJobsThatWaitAloneRest(t *testing.T) {
	const waiting = 100
	l, queue := crowded(t, waiting)
	l.idle(time.Minute)
	l.all, l.acts = 0, 0
	l.idle(time.Hour)
	if l.all > 7*waiting || l.acts > 20*waiting {
		t.Errorf("%d jobs ask %d times in an hour, and wake their node %d times: nothing has happened", waiting, l.all, l.acts)
	}
	if n := len(l.core.Claims.Queue); n != waiting {
		t.Errorf("%d jobs are queued after an hour, want %d", n, waiting)
	}
	l.core.Claims.Used.Slots, l.core.Claims.Loose = 0, true
	if l.act(); len(l.grants) != 1 || l.grants[0].Job != queue[0] {
		t.Errorf("%d jobs get the slot when it is free, want the first that waits", len(l.grants))
	}
}

// When somebody comes all of them ask, soon, and the first of them at once.
func TestJobsThatWaitAloneAskWhoComes(t *testing.T) {
	const waiting = 100
	l, queue := crowded(t, waiting)
	l.idle(5 * time.Minute)
	l.core.Membership(l.now, l.core.Self.ID, true)
	l.ads = map[jobs.ID]int{}
	if l.idle(time.Second); len(l.ads) > 0 {
		t.Errorf("%d jobs ask others, and there is nobody", len(l.ads))
	}
	l.size = 2
	l.core.Membership(l.now, jobtest.Node(2), true)
	l.act()
	if l.ads[queue[0]] == 0 || len(l.ads) > waiting/10 {
		t.Errorf("%d jobs ask who comes at once, the first %d times; want that one, and the others later", len(l.ads), l.ads[queue[0]])
	}
	l.idle(waiting*resumePause + time.Second)
	if len(l.ads) != waiting {
		t.Errorf("%d of %d jobs have asked who came", len(l.ads), waiting)
	}
	l.ads = map[jobs.ID]int{}
	if l.idle(2 * time.Minute); len(l.ads) != waiting {
		t.Errorf("%d of %d jobs ask again", len(l.ads), waiting)
	}
}

// A job that the node's queue has no place for, any more, asks again each minute.
func TestJobsThatAreNotQueuedDoNotRest(t *testing.T) {
	l, queue := crowded(t, 1)
	l.idle(5 * time.Minute)
	for i := range 4096 {
		ad := wiretest.Ad(jobtest.Node(2), fmt.Sprintf("%05d", i), 1, 1)
		ad.Priority, ad.Life = 1, time.Hour.Milliseconds()
		l.core.Advertised(l.now, ad, flood.Message{})
		l.act()
	}
	l.ads = map[jobs.ID]int{}
	for range 5 {
		l.idle(2 * time.Minute)
		if l.ads[queue[0]] == 0 {
			t.Error("it does not ask for two minutes")
		}
		clear(l.ads)
	}
}
