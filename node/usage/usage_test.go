package usage_test

import (
	"context"
	"math"
	"os"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"zorilla/node/usage"
)

// A meter keeps the mean of each minute, of one hour, and tells the last look.
func TestMeter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m usage.Meter
		if m.Lately() != nil {
			t.Error("it tells what it has not seen")
		}
		start := time.Now()
		look := func() usage.Look {
			minute := int(time.Since(start) / time.Minute)
			return usage.Look{Slots: 4, Busy: minute % 5, Shut: minute >= 100, Load: float64(minute), Free: 7}
		}
		done := make(chan error)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { done <- m.Watch(ctx, look) }()
		time.Sleep(90 * time.Second)
		if l := m.Lately(); !l.Sound() || len(l.Busy) != 2 || l.Busy[0] != 0 || l.Busy[1] != 50 || l.Load != 1 || l.Free != 7 {
			t.Errorf("after a minute and a half: %+v", l)
		}
		time.Sleep(118 * time.Minute)
		l := m.Lately()
		if !l.Sound() || len(l.Busy) != usage.Minutes || l.Load != 119 {
			t.Fatalf("after two hours: %d minutes, load %v", len(l.Busy), l.Load)
		}
		for i := range l.Busy {
			minute := 119 - (usage.Minutes - 1 - i)
			busy, shut := minute%5*50, 0
			if minute >= 100 {
				shut = 200 - busy
			}
			if int(l.Busy[i]) != busy || int(l.Shut[i]) != shut {
				t.Errorf("minute %d: %d busy, %d shut, want %d and %d", minute, l.Busy[i], l.Shut[i], busy, shut)
			}
		}
		cancel()
		<-done
	})
}

// Shares are means of looks, and never more than all.
func TestMeans(t *testing.T) {
	var m usage.Meter
	at := time.Unix(1e9, 0)
	for i := range 12 { // busy for a quarter of a minute
		l := usage.Look{Slots: 3, Shut: true}
		if i < 3 {
			l.Busy = 9
		}
		m.Note(at.Add(time.Duration(i)*5*time.Second), l)
	}
	m.Note(at.Add(time.Minute), usage.Look{Busy: 5, Shut: true}) // without a slot
	if l := m.Lately(); !l.Sound() || len(l.Busy) != 2 || l.Busy[0] != 50 || l.Shut[0] != 150 || l.Busy[1] != 0 || l.Shut[1] != 0 {
		t.Errorf("%+v", l)
	}
}

func TestSum(t *testing.T) {
	bad := []usage.Part{
		{Slots: 4, Lately: nil},
		{Slots: -4, Lately: &usage.Lately{Busy: []byte{200}, Shut: []byte{0}}},
		{Slots: 4, Lately: &usage.Lately{Busy: []byte{200}, Shut: []byte{1}}},
		{Slots: 4, Lately: &usage.Lately{Busy: []byte{200}}},
		{Slots: 4, Lately: &usage.Lately{Busy: make([]byte, 61), Shut: make([]byte, 61)}},
		{Slots: 4, Lately: &usage.Lately{Busy: []byte{9}, Shut: []byte{0}, Load: math.NaN()}},
		{Slots: 4, Lately: &usage.Lately{Busy: []byte{9}, Shut: []byte{0}, Load: -1}},
		{Slots: 4, Lately: &usage.Lately{Busy: []byte{9}, Shut: []byte{0}, Free: -1}},
	}
	sum := usage.Sum(append(bad,
		usage.Part{Slots: 4, Lately: &usage.Lately{Busy: []byte{100, 200}, Shut: []byte{100, 0}}},
		usage.Part{Slots: 10, Lately: &usage.Lately{Busy: []byte{20}, Shut: []byte{20}}}))
	for i, m := range sum {
		want := usage.Total{}[0]
		switch i {
		case usage.Minutes - 2:
			want.Busy, want.Shut, want.All = 2, 2, 4
		case usage.Minutes - 1:
			want.Busy, want.Shut, want.All = 5, 1, 14
		}
		if m != want {
			t.Errorf("minute %d: %v, want %v", i, m, want)
		}
	}
}

func TestMachine(t *testing.T) {
	for _, c := range []struct {
		load, memory string
		l            float64
		free         int64
	}{
		{"0.52 0.58 0.59 1/467 12345\n", "MemTotal: 100 kB\nMemAvailable:     20 kB\n", .52, 20 << 10},
		{"nan", "MemAvailable: -5 kB\n", 0, 0},
		{"-1", "MemAvailable: 99999999999999999999 kB\n", 0, 0},
		{"x", "nothing", 0, 0},
	} {
		load, free := usage.Machine(fstest.MapFS{"proc/loadavg": {Data: []byte(c.load)}, "proc/meminfo": {Data: []byte(c.memory)}})
		if load != c.l || free != c.free {
			t.Errorf("%q, %q: %v, %d", c.load, c.memory, load, free)
		}
	}
	if load, free := usage.Machine(fstest.MapFS{}); load != 0 || free != 0 {
		t.Errorf("without files: %v, %d", load, free)
	}
	if _, free := usage.Machine(os.DirFS("/")); free < 1<<20 {
		t.Errorf("here %d bytes are free", free)
	}
}
