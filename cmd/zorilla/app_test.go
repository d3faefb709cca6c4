package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"zorilla/cmd/zorilla/script"
	"zorilla/cmd/zorilla/suggest"
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
		"--node /s ps":        "unknown option --node before a command: options follow it",
		"ps --memebrs":        "unknown option --memebrs: did you mean --members?\ntry 'zorilla ps --help'",
		"run --ntasks 4 a":    "unknown option --ntasks: did you mean -n?\n",
		"run -k a":            "unknown option -k\n",
		"run -n":              "option -n needs a value\n",
		"run -c many a":       "-c \"many\": want a whole number\n",
		"ps --help=maybe":     "--help \"maybe\": want true or false\n",
		"resize --release x":  "--release \"x\": want a whole number\n",
		"run --mpi=maybe a":   "--mpi \"maybe\": want true or false\n",
		"node --node-limit x": "--node-limit \"x\": want a time such as 10m\n",
		"rnu a":               "unknown command rnu: did you mean run? 'zorilla help' lists all\n",
		"squeue":              "unknown command squeue: did you mean ps?",
		"ps --nosuch":         "unknown option --nosuch\ntry 'zorilla ps --help'",
	} {
		var out, errs bytes.Buffer
		if code := run(t.Context(), &console{stdout: &out, stderr: &errs}, nil, append([]string{"zorilla"}, strings.Fields(in)...)); code != 2 || !strings.Contains(errs.String(), want) {
			t.Errorf("%s: %d, %s", in, code, &errs)
		}
	}
}

// Of every option of a job it is decided whether a script of somebody else may have it.
func TestOptionsOfScriptsAreJudged(t *testing.T) {
	app := newApp(&console{}, nil)
	for _, name := range []string{"run", "submit"} {
		for _, f := range app.Command(name).Flags {
			if !script.Judged(f.Names()[0]) {
				t.Errorf("%s: --%s is in no list of what scripts may have", name, f.Names()[0])
			}
		}
	}
}

var update = flag.Bool("update", false, "write docs/reference.md anew")

// The reference is what the program says of itself.
func TestReference(t *testing.T) {
	const page = "../../docs/reference.md"
	want := reference(newApp(&console{}, nil))
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(page); err != nil || string(got) != want {
		t.Errorf("docs/reference.md is not what the commands say: go test ./cmd/zorilla -run TestReference -update (%v)", err)
	}
}

// reference is a page of all commands and options.
func reference(app *cli.App) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Commands and options\n\nThis is what `zorilla COMMAND --help` prints, made by `go test ./cmd/zorilla -run TestReference -update`.\n")
	for _, group := range []string{groupJobs, groupNet, ""} {
		for _, c := range app.Commands {
			if c.Category != group || c.Hidden {
				continue
			}
			fmt.Fprintf(&b, "\n## zorilla %s\n\n%s.\n\n    %s\n", c.Name, strings.ToUpper(c.Usage[:1])+c.Usage[1:], c.UsageText)
			if c.Description != "" {
				fmt.Fprintf(&b, "\n```text\n%s\n```\n", c.Description)
			}
			fmt.Fprintf(&b, "\n| option | meaning |\n|---|---|\n")
			for _, f := range c.VisibleFlags() {
				// As the help has it: names, a tab, what it means.
				names, meaning, _ := strings.Cut(f.String(), "\t")
				names, _, _ = strings.Cut(names, " [ ") // that it can be given again is told in words
				fmt.Fprintf(&b, "| `%s` | %s |\n", strings.ReplaceAll(names, "|", "\\|"), strings.ReplaceAll(meaning, "|", "\\|"))
			}
		}
	}
	return regexp.MustCompile(`(?m) +$`).ReplaceAllString(b.String(), "")
}

// Commands that pages show exist, and so do their options.
func TestPagesShowCommandsThatExist(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	app, shown := newApp(&console{}, nil), 0
	for _, page := range append(pages, "../../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile("(?m)^    (?:[a-z]+\\$ +)?(zorilla .*)$|`(zorilla [^`]*)`").FindAllStringSubmatch(string(text), -1) {
			line := m[1] + m[2]
			words := shellWords(line)
			cmd := app.Command(words[1])
			if words[1] == "COMMAND" || words[1] == "--version" || words[1] == "help" {
				continue
			}
			if shown++; cmd == nil {
				t.Errorf("%s: %s: no command %s", page, line, words[1])
				continue
			}
			for _, option := range optionsIn(cmd, words[2:]) {
				name, _, _ := strings.Cut(strings.TrimLeft(option, "-"), "=")
				if known := func(f cli.Flag) bool { return slices.Contains(f.Names(), name) }; !slices.ContainsFunc(cmd.Flags, known) && name != "help" {
					t.Errorf("%s: %s: no option %s", page, line, option)
				}
			}
		}
	}
	if shown < 100 {
		t.Errorf("%d commands were found in pages", shown)
	}
}

// optionsIn are the options among the words after a command, up to a program of the user's.
func optionsIn(cmd *cli.Command, words []string) (options []string) {
	for i := 0; i < len(words) && words[i] != "--"; i++ {
		if !strings.HasPrefix(words[i], "-") || words[i] == "-" {
			if slices.Contains([]string{"run", "submit", "dev", "exec", "rsh", "alloc"}, cmd.Name) {
				break
			}
			continue
		}
		options = append(options, words[i])
		for _, f := range cmd.Flags {
			if _, isBool := f.(*cli.BoolFlag); !isBool && slices.Contains(f.Names(), strings.TrimLeft(words[i], "-")) {
				i++
				break
			}
		}
	}
	return options
}

// shellWords splits the first command of a line as a shell does.
func shellWords(line string) (words []string) {
	for _, m := range regexp.MustCompile(`((?:'[^']*'|"[^"]*"|[^\s'"|;&>#])+)|([|;&>#])`).FindAllStringSubmatch(line, -1) {
		if m[2] != "" {
			return words
		}
		words = append(words, strings.NewReplacer("'", "", `"`, "").Replace(m[1]))
	}
	return words
}

// What others call a command, or an option, is none of ours and means one that there is.
func TestWordsOfOthersMeanOurs(t *testing.T) {
	app := newApp(&console{}, nil)
	for theirs, ours := range suggest.Commands {
		if app.Command(ours) == nil || app.Command(theirs) != nil {
			t.Errorf("%s: is %s", theirs, ours)
		}
	}
	options := map[string]bool{}
	for _, c := range app.Commands {
		for _, name := range optionNames(c) {
			options[name] = true
		}
	}
	for theirs, ours := range suggest.Options {
		if !options[ours] {
			t.Errorf("%s: there is no option %s", theirs, ours)
		}
	}
}
