package seeds

import (
	"slices"
	"testing"
	"time"
)

func TestRandom(t *testing.T) {
	tried := func() (list []uint64) {
		Random(t, func(t *testing.T, seed uint64) { list = append(list, seed) })
		return list
	}
	t.Setenv(variable, "")
	a, b := tried(), tried()
	if len(a) != 1 || len(b) != 1 || a[0] == b[0] {
		t.Errorf("tried %v, then %v: want one each, and another each time", a, b)
	}
	t.Setenv(variable, "7-9")
	if list := tried(); !slices.Equal(list, []uint64{7, 8, 9}) {
		t.Errorf("tried %v", list)
	}
	t.Setenv(variable, "18446744073709551615-18446744073709551615")
	if list := tried(); len(list) != 1 {
		t.Errorf("tried %v", list)
	}
}

func TestOne(t *testing.T) {
	t.Setenv(variable, "")
	if a, b := One(t), One(t); a == b {
		t.Errorf("got %d twice", a)
	}
	t.Setenv(variable, "3-5")
	if seed := One(t); seed != 3 {
		t.Errorf("got %d", seed)
	}
}

func TestRange(t *testing.T) {
	t.Setenv(variable, "")
	if from, to := Range(t, 20); from != 1 || to != 20 {
		t.Errorf("got %d to %d", from, to)
	}
	t.Setenv(variable, "3-5")
	if from, to := Range(t, 20); from != 3 || to != 5 {
		t.Errorf("got %d to %d", from, to)
	}
}

func TestAgain(t *testing.T) {
	want := "ZORILLA_SEEDS=12-12 go test -run '^TestAgain$' ./internal/seeds"
	t.Run("deeper", func(t *testing.T) {
		if got := Again(t, 12); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

func TestLessUnderTheRaceDetector(t *testing.T) {
	most, limit := 9, time.Second
	if Raced {
		most, limit = 3, 2*time.Second
	}
	if n, d := Fewer(9, 3), Longer(time.Second); n != most || d != limit {
		t.Errorf("with Raced = %v: %d and %v", Raced, n, d)
	}
	if ran := t.Run("one goroutine", func(t *testing.T) {
		OneGoroutine(t)
		if Raced {
			t.Error("goes on")
		}
	}); !ran {
		t.Error("failed")
	}
}

func TestLarger(t *testing.T) {
	for value, want := range map[string]int{"": 60, "1": 160} {
		t.Setenv(full, value)
		if got := Larger(160, 60); got != want {
			t.Errorf("with %q: %d, want %d", value, got, want)
		}
	}
}
