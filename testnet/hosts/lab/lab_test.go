package lab

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestPlanNamesHosts(t *testing.T) {
	p, err := PlanOf("grid5000")
	if err != nil {
		t.Fatal(err)
	}
	names := p.Names()
	if len(names) != 12 || names[0] != "nancy-1" || names[11] != "sophia-2" || p.SiteOf("sophia-2") != 5 || p.SiteOf("paris-1") != -1 || p.SiteOf("nancy") != -1 {
		t.Errorf("hosts %v, at %d and %d", names, p.SiteOf("sophia-2"), p.SiteOf("paris-1"))
	}
}

// The first hosts of each site are who they are in the whole plan, which stays as it is.
func TestFirst(t *testing.T) {
	p, err := PlanOf("qoscosgrid")
	if err != nil {
		t.Fatal(err)
	}
	first := p.First(3)
	if names := first.Names(); !slices.Equal(names, []string{"orsay-1", "orsay-2", "orsay-3", "bordeaux-1", "bordeaux-2", "bordeaux-3", "rennes-1", "rennes-2"}) {
		t.Errorf("the first three of each are %v", names)
	}
	if len(p.Names()) != 11 || first.OneWay(0, 1) != p.OneWay(0, 1) {
		t.Errorf("of %v", p.Names())
	}
}

// What a script tells is what is found, once.
func TestTell(t *testing.T) {
	s := &Stage{dir: t.TempDir()}
	t.Setenv(foundVariable, s.found())
	if err := Tell([]float64{1, 2.5}); err != nil {
		t.Fatal(err)
	}
	var found []float64
	if err := s.take(&found); err != nil || !slices.Equal(found, []float64{1, 2.5}) {
		t.Errorf("%v, %v", found, err)
	}
	if err := s.take(&found); err == nil || !strings.Contains(err.Error(), "has told nothing") {
		t.Errorf("a script that told nothing: %v", err)
	}
}

func TestLeftoversFindProcesses(t *testing.T) {
	before, err := surroundings()
	if err != nil {
		t.Fatal(err)
	}
	s := &Stage{dir: t.TempDir(), before: before}
	if _, err := s.leftovers(); err == nil {
		t.Error("a script that told nothing is accepted")
	}
	tell := func(link string) {
		if err := os.WriteFile(s.census(), []byte(link), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tell("pid:[1]")
	if left, err := s.leftovers(); err != nil || len(left) > 0 {
		t.Errorf("where nothing was: %v, %v", left, err)
	}
	link, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		t.Fatal(err)
	}
	tell(link)
	if left, err := s.leftovers(); err != nil || !slices.ContainsFunc(left, func(x string) bool { return strings.HasPrefix(x, "process ") }) {
		t.Errorf("this process itself is not found: %v, %v", left, err)
	}
	s.before = append(s.before, "link site7")
	if left, err := s.leftovers(); err != nil || slices.Contains(left, "link site7") {
		t.Errorf("what was there before is left: %v, %v", left, err)
	}
}

func TestOutsideOfALabRequestsSaySo(t *testing.T) {
	t.Setenv(Variable, t.TempDir())
	if _, err := Do("heal"); err == nil || !strings.Contains(err.Error(), "no lab answers") {
		t.Errorf("without a lab: %v", err)
	}
	if err := On(t.TempDir(), "nancy-1", func() error { return nil }); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a host without a lab: %v", err)
	}
	t.Setenv(Variable, "")
	if Inside() {
		t.Error("this is no script")
	}
}

func TestUntilTellsWhatIsMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		took, err := Until(t.Context(), time.Second, "three tries", func(context.Context) string {
			if tries++; tries < 3 {
				return "some"
			}
			return ""
		})
		if err != nil || took != 200*time.Millisecond {
			t.Errorf("after %v: %v", took, err)
		}
		if _, err := Until(t.Context(), time.Second, "all is there", func(context.Context) string { return "a bit" }); err == nil || err.Error() != "not within 1s: all is there: a bit" {
			t.Errorf("what never comes: %v", err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("no time left")
		cancel(why)
		if _, err := Until(ctx, time.Second, "all is there", func(context.Context) string { return "a bit" }); !errors.Is(err, why) {
			t.Errorf("interrupted: %v", err)
		}
	})
}
