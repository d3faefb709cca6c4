package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"zorilla/jobs"
	"zorilla/jobs/placement"
)

func TestOptionsMayFollowTheJob(t *testing.T) {
	app := newApp(&console{}, nil)
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

// An option has one default or none, it is what happens, and the help tells it in
// one place.
func TestHelpShowsOneTrueDefault(t *testing.T) {
	for _, c := range newApp(&console{}, nil).Commands {
		var out, errs bytes.Buffer
		if code := run(t.Context(), &console{stdout: &out, stderr: &errs}, nil, []string{"zorilla", c.Name, "--help"}); code != 0 {
			t.Fatalf("%s --help: %d, %s", c.Name, code, &errs)
		}
		for line := range strings.Lines(out.String()) {
			if strings.Count(line, "default") > 1 || strings.Contains(line, "(default: -1)") || strings.Contains(line, "(default: false)") {
				t.Errorf("%s: %s", c.Name, line)
			}
		}
		for _, f := range c.Flags {
			text, _ := f.(cli.DocGenerationFlag)
			if strings.Contains(text.GetUsage(), "default") {
				t.Errorf("%s: --%s tells its default beside what it does: %s", c.Name, f.Names()[0], text.GetUsage())
			}
			switch f := f.(type) { // what is told in words has no other value
			case *cli.IntFlag:
				if f.DefaultText != "" && f.Value > 0 && f.DefaultText != fmt.Sprint(f.Value) {
					t.Errorf("%s: --%s is %d, not %s", c.Name, f.Name, f.Value, f.DefaultText)
				}
			case *cli.StringFlag:
				if f.DefaultText != "" && f.Value != "" && f.DefaultText != f.Value {
					t.Errorf("%s: --%s is %s, not %s", c.Name, f.Name, f.Value, f.DefaultText)
				}
			}
		}
	}
	// Where the words stand for a value that the node knows, it is this one.
	for name, want := range map[string]string{"strategy": string(placement.Nearest), "search": jobs.SearchAdaptive} {
		for _, f := range jobFlags() {
			if s, ok := f.(*cli.StringFlag); ok && s.Name == name && s.DefaultText != want {
				t.Errorf("--%s: the help says %s, want %s", name, s.DefaultText, want)
			}
		}
	}
}

func TestAnOptionBeforeTheCommandIsToldWhereItGoes(t *testing.T) {
	for in, want := range map[string]string{
		"--node /s ps": "unknown option -node before a command: options follow it",
		"ps --nosuch":  "unknown option -nosuch\ntry 'zorilla ps --help'",
	} {
		var out, errs bytes.Buffer
		if code := run(t.Context(), &console{stdout: &out, stderr: &errs}, nil, append([]string{"zorilla"}, strings.Fields(in)...)); code != 2 || !strings.Contains(errs.String(), want) {
			t.Errorf("%s: %d, %s", in, code, &errs)
		}
	}
}
