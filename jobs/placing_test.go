package jobs

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestGrant(t *testing.T) {
	expose := []string{"/data:ro", "/scratch:rw"}
	for _, c := range []struct {
		mode    string
		own     bool
		mounts  []string
		want    []string // beyond what all are shown
		missing string
	}{
		{mounts: nil},
		{mounts: []string{"/data/x:ro", "/scratch/y:rw"}},
		{mounts: []string{"/data:rw"}, missing: "/data"},
		{mounts: []string{"/data:ro", "/home/ann:ro"}, missing: "/home/ann"},
		{own: true, mounts: []string{"/home/ann:ro", "/data/x:ro"}, want: []string{"/home/ann:ro"}},
		{own: true, mounts: []string{"/home/ann:rw"}, missing: "/home/ann"},
		{own: true, mode: MountsOwnWrite, mounts: []string{"/home/ann:rw"}, want: []string{"/home/ann:rw"}},
		{own: false, mode: MountsOwnWrite, mounts: []string{"/home/ann:ro"}, missing: "/home/ann"},
		{own: true, mode: MountsExposed, mounts: []string{"/home/ann:ro"}, missing: "/home/ann"},
		{own: true, mode: MountsExposed, mounts: []string{"/data:ro"}},
		{own: true, mounts: []string{"nonsense"}, missing: "nonsense"},
	} {
		l := Limits{Expose: expose, Mounts: c.mode}
		all, missing := l.Grant(c.own, c.mounts)
		if missing != c.missing || missing == "" && !slices.Equal(all.Strings(), slices.Concat(expose, c.want)) {
			t.Errorf("%+v: got %q, missing %q", c, all.Strings(), missing)
		}
	}
	l := Limits{Expose: expose, Mounts: MountsOwnWrite}
	if all, _ := l.Grant(true, []string{"/data:rw"}); !slices.Equal(all.Strings(), []string{"/scratch:rw", "/data:rw"}) {
		t.Errorf("what is shown to be read is granted to be written as %q", all.Strings())
	}
}

func TestMountsOfASpec(t *testing.T) {
	many := make([]string, MaxMounts+1)
	for i := range many {
		many[i] = fmt.Sprintf("/%d:ro", i)
	}
	long := "/" + strings.Repeat("x", 200) + ":ro"
	for _, c := range []struct {
		mounts []string
		where  string
		bad    string
		want   string // the condition
	}{
		{where: "slots > 1", want: "slots > 1"},
		{mounts: []string{"/data:ro", "/scratch:rw"}, want: "version >= 3"},
		{mounts: []string{"/data:ro"}, where: "slots > 1 || gpus > 0", want: "version >= 3 && (slots > 1 || gpus > 0)"},
		{mounts: []string{"/data"}, bad: "want PATH:ro or PATH:rw"},
		{mounts: []string{"data:ro"}, bad: "want an absolute path"},
		{mounts: []string{"/a:ro", "/a:rw"}, bad: "twice"},
		{mounts: many, bad: "at most 8"},
		{mounts: []string{long}, want: "version >= 3"},
		{mounts: []string{long}, where: strings.Repeat("slots > 1 && ", 3) + "slots > 1", bad: "bytes too long together"},
		{mounts: []string{"/a:ro"}, where: "slots > 1 // all", bad: "--mount and --where"},
	} {
		s := Spec{Args: []string{"true"}, Min: 1, Max: 1, Slots: 1, Where: c.where, Access: Access{Mounts: c.mounts}}
		switch err := s.Validate(); {
		case c.bad == "" && err != nil, c.bad != "" && (!errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), c.bad)):
			t.Errorf("%q %q: %v", c.mounts, c.where, err)
		case err == nil && s.Condition() != c.want:
			t.Errorf("%q %q: nodes must fulfil %q", c.mounts, c.where, s.Condition())
		}
	}
}
