package main

import (
	"slices"
	"testing"
)

func TestMemoryOfAProcess(t *testing.T) {
	if got := ownOf([]byte("Name:\tzorilla\nVmRSS:\t   41000 kB\nRssAnon:\t   31250 kB\nRssFile:\t 9750 kB\n")); got != 32 {
		t.Errorf("%v MB", got)
	}
	if got := ownOf(nil); got != 0 {
		t.Errorf("of a process that has ended %v MB", got)
	}
}

func TestPrograms(t *testing.T) {
	all, err := programs(t.Context(), "before=old/zorilla,now=zorilla", "")
	if want := []program{{"before", "old/zorilla"}, {"now", "zorilla"}}; err != nil || !slices.Equal(all, want) {
		t.Errorf("%v, %v", all, err)
	}
	if _, err := programs(t.Context(), "zorilla", ""); err == nil {
		t.Error("a program without a name is taken")
	}
}
