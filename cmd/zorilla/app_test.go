package main

import (
	"slices"
	"strings"
	"testing"
)

func TestOptionsMayFollowTheJob(t *testing.T) {
	app := (&shell{}).app()
	for in, want := range map[string]string{
		"status last --json":            "status --json last",
		"status --json last":            "status --json last",
		"logs k7f3q:2 -f --state /s":    "logs -f --state /s k7f3q:2",
		"get last --into=out":           "get --into=out last",
		"cancel a b --state":            "cancel --state a b",
		"status -- --json":              "status -- --json",
		"wait a -- -b":                  "wait a -- -b",
		"run -n 2 prog --json":          "run -n 2 prog --json",
		"submit prog -x":                "submit prog -x",
		"dev -n 3 zorilla nodes --json": "dev -n 3 zorilla nodes --json",
		"nosuch a --json":               "nosuch a --json",
		"ps":                            "ps",
	} {
		got := optionsFirst(app, append([]string{"zorilla"}, strings.Fields(in)...))
		if !slices.Equal(got[1:], strings.Fields(want)) {
			t.Errorf("%q becomes %q, want %q", in, got[1:], want)
		}
	}
}
