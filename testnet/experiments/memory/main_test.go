package main

import (
	"slices"
	"testing"
)

func TestPrograms(t *testing.T) {
	all, err := programs(t.Context(), "before=old/zorilla,now=zorilla", "")
	if want := []program{{"before", "old/zorilla"}, {"now", "zorilla"}}; err != nil || !slices.Equal(all, want) {
		t.Errorf("%v, %v", all, err)
	}
	if _, err := programs(t.Context(), "zorilla", ""); err == nil {
		t.Error("a program without a name is taken")
	}
}
