package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"zorilla/docs/tables"
	"zorilla/jobs"
	"zorilla/node/api"
)

const exitCodes = "../../docs/exit-codes.md"

// cmdRow is the command row NAME [COMMAND...] of scripts: it runs the command,
// and compares what comes of it with a row of docs/exit-codes.md. Rows about jobs
// are about the last job of the client's node, which may take its time.
func cmdRow(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: row NAME [COMMAND...]")
	}
	rows, err := tables.Read(exitCodes)
	ts.Check(err)
	row, err := tables.Find(rows, args[0])
	ts.Check(err)
	code := -1
	if len(args) > 1 {
		code = 0
		if err := ts.Exec(args[1], args[2:]...); err != nil {
			exit := (*exec.ExitError)(nil)
			if !errors.As(err, &exit) {
				ts.Check(err)
			}
			code = exit.ExitCode()
		}
	}
	if strings.HasPrefix(row.Table, "Codes") {
		ts.Check(row.Check(tables.Seen{Code: code}))
		return
	}
	client, err := api.Dial(socketOf(ts.Getenv("ZORILLA_STATE")))
	ts.Check(err)
	defer client.Close()
	if !within(func() bool { err = fits(client, row, code); return err == nil }) {
		ts.Fatalf("%v", err)
	}
}

// fits compares a row with the last job.
func fits(client *api.Client, row tables.Row, code int) error {
	ctx := context.Background()
	if strings.HasPrefix(row.Table, "What became of") {
		return fateFits(client, row)
	}
	if strings.HasPrefix(row.Table, "Why") {
		ex, err := client.Explain(ctx, "last")
		if err != nil {
			return err
		}
		for reason := range ex.Declined {
			if row.Check(tables.Seen{Reason: reason}) == nil {
				return nil
			}
		}
		return fmt.Errorf("declined: %v, want %s", ex.Declined, row.Name)
	}
	st, err := client.Job(ctx, "last")
	if err != nil {
		return err
	}
	if strings.HasPrefix(row.Table, "How one worker") {
		return workerFits(st, row)
	}
	if code >= 0 && st.State.Final() && code != st.ExitCode {
		return fmt.Errorf("the command ended with %d, the job with %d", code, st.ExitCode)
	}
	return row.Check(tables.Seen{State: string(st.State), Code: st.ExitCode, Reason: st.Reason})
}

// fateFits compares a row with what became of the nodes' offers for the last job: that of one
// of them must be so.
func fateFits(client *api.Client, row tables.Row) error {
	ex, err := client.Explain(context.Background(), "last")
	if err != nil {
		return err
	}
	var fates []string
	for _, n := range ex.Nodes {
		if row.Check(tables.Seen{Reason: n.Fate}) == nil {
			return nil
		}
		fates = append(fates, n.Fate)
	}
	return fmt.Errorf("became of offers: %q, want %s", fates, row.Name)
}

// workerFits compares a row with the workers of a job: one of them must have
// ended so.
func workerFits(st jobs.Status, row tables.Row) error {
	err := fmt.Errorf("%s: no worker has ended", row.Name)
	for _, w := range st.Workers {
		if w.Exit == nil {
			continue
		}
		if err = row.Check(tables.Seen{Code: w.Exit.Code, Reason: string(w.Exit.Cause)}); err == nil {
			return nil
		}
	}
	return err
}

// wantRow compares the exit code of a command with a row of docs/exit-codes.md.
func wantRow(t *testing.T, name string, code int) {
	t.Helper()
	if err := tables.Check(exitCodes, name, tables.Seen{Code: code}); err != nil {
		t.Error(err)
	}
}
