package man

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"zorilla/internal/needs"
)

var app = &cli.App{
	Name: "zorilla", Usage: "run programs", UsageText: "zorilla COMMAND", Description: "first\n.second", Version: "1.2 abcdef",
	Commands: []*cli.Command{
		{Name: "run", Category: "Jobs", Usage: "run it", UsageText: "zorilla run [options]", Description: "zorilla run -n 2 -- 'a b'\n'quoted'",
			Flags: []cli.Flag{&cli.StringFlag{Name: "n", Aliases: []string{"np"}, Usage: "so `N` workers"}, &cli.BoolFlag{Name: "x", Hidden: true}}},
		{Name: "secret", Hidden: true}, {Name: "version", Usage: "tell it", UsageText: "zorilla version"},
	},
}

func TestPage(t *testing.T) {
	const want = `.TH ZORILLA-RUN 1 "" "zorilla 1.2" "Zorilla"
.SH NAME
zorilla\-run \- run it
.SH SYNOPSIS
.nf
zorilla run [options]
.fi
.SH DESCRIPTION
.nf
zorilla run \-n 2 \-\- \(aqa b\(aq
\(aqquoted\(aq
.fi
.SH OPTIONS
.TP
.B \-n N, \-\-np N
so N workers
.SH SEE ALSO
.BR zorilla (1)
`
	if got := Page(app, app.Commands[0]); got != want {
		t.Errorf("got\n%s", got)
	}
	all := Page(app, nil)
	for _, text := range []string{".SH COMMANDS: JOBS\n", ".SS zorilla run\n", "\\&.second\n", ".SH COMMANDS\n.SS zorilla version\n"} {
		if !strings.Contains(all, text) {
			t.Errorf("has no %q:\n%s", text, all)
		}
	}
	if strings.Contains(all, "secret") {
		t.Error("shows what is hidden")
	}
}

// The formatter finds nothing wrong.
func TestPageIsFormatted(t *testing.T) {
	needs.Programs(t, "groff")
	cmd := exec.Command("groff", "-man", "-Tutf8", "-ww")
	cmd.Stdin = strings.NewReader(Page(app, nil))
	if out, err := cmd.CombinedOutput(); err != nil || strings.Contains(string(out), "warning") || !strings.Contains(string(out), "so N workers") {
		t.Errorf("%v\n%s", err, out)
	}
}
