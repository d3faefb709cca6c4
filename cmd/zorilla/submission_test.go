package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"zorilla/jobs"
	"zorilla/node/api"
	"zorilla/node/api/apitest"
	"zorilla/transfer"
)

// flaky is a node whose connections break: the answers to submissions, and to
// questions about inputs, are lost as the list says.
type flaky struct {
	*apitest.Fake
	lose    []error // of the next submissions; nil = it is answered
	ask     error   // of questions about inputs
	sent    int     // chunks
	refuses int     // submissions that are refused for want of inputs
}

func (f *flaky) Submit(ctx context.Context, spec jobs.Spec) (jobs.ID, error) {
	var lost error
	if len(f.lose) > 0 {
		lost, f.lose = f.lose[0], f.lose[1:]
	}
	if errors.Is(lost, api.ErrNoNode) || lost != nil && f.refuses > 0 { // it dies before it has taken it
		return "", lost
	}
	if f.refuses > 0 {
		f.refuses--
		return "", fmt.Errorf("%w: inputs: not found", jobs.ErrInvalid)
	}
	id, err := f.Fake.Submit(ctx, spec)
	if lost != nil {
		return "", lost
	}
	return id, err
}

func (f *flaky) Missing(ctx context.Context, h []transfer.Hash) ([]transfer.Hash, error) {
	if f.ask != nil {
		return nil, f.ask
	}
	return f.Fake.Missing(ctx, h)
}

func (f *flaky) PutChunk(ctx context.Context, h transfer.Hash, b []byte) error {
	f.sent++
	return f.Fake.PutChunk(ctx, h, b)
}

func TestSubmissionIsTriedAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "input")
	if err := os.WriteFile(path, []byte("some bytes"), 0o644); err != nil {
		t.Fatal(err)
	}
	broken, gone := fmt.Errorf("%w: %w", api.ErrUnavailable, api.ErrBroken), fmt.Errorf("%w at x", api.ErrNoNode)
	stopping := fmt.Errorf("%w: the node is stopping", api.ErrUnavailable)
	long := make([]error, 1000)
	for i := range long {
		long[i] = gone
	}
	const may, not = "the job may have been accepted: submit it again with --key K, and it is not run twice", "the job was not submitted"
	for name, c := range map[string]struct {
		node    flaky
		keyless bool // the user gives no key
		after   string
		ending  string // of the error
		says    string
		jobs    int
		took    time.Duration // about
		sent    int           // chunks, of which the inputs are two
	}{
		"at once":              {sent: 2, jobs: 1},
		"the answer is lost":   {node: flaky{lose: []error{broken}}, sent: 2, jobs: 1, says: "submitting again", took: nodePoll},
		"without a key":        {node: flaky{lose: []error{broken}}, keyless: true, sent: 2, jobs: 1, says: "submitting again", took: nodePoll},
		"started again":        {node: flaky{lose: []error{broken, gone, gone, stopping, nil}}, sent: 2, jobs: 1, says: "submitting again", took: 4 * nodePoll},
		"it forgot the inputs": {node: flaky{lose: []error{broken, nil}, refuses: 1}, sent: 3, jobs: 1, says: "submitting again", took: nodePoll},
		"stays away":           {node: flaky{lose: append([]error{broken}, long...)}, sent: 2, jobs: 1, says: "submitting again", ending: may, took: nodeAway},
		"no node":              {node: flaky{ask: gone}, ending: "no node is running at x"},
		"breaks before":        {node: flaky{ask: broken}, says: "submitting again", ending: not, took: nodeAway},
		"origin is away":       {after: "k7f3q@zother", ending: "job k7f3q@zother: not found: 'zorilla ps' lists the jobs"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				node := c.node
				node.Fake = apitest.New()
				var stderr bytes.Buffer
				spec := jobs.Spec{Key: "K", Args: []string{"a"}, Min: 1, Max: 1, Slots: 1}
				if c.keyless {
					spec.Key = ""
				}
				if c.after != "" {
					spec.After = []jobs.Dependency{{Kind: jobs.AfterAny, Job: jobs.ID(c.after)}}
				}
				began := time.Now()
				id, err := submit(t.Context(), &console{stderr: &stderr}, &node, spec, []transfer.Input{{Path: path}}, nil, left)
				took := time.Since(began)
				if c.ending == "" && (err != nil || !id.Valid()) || c.ending != "" && (err == nil || !strings.HasSuffix(err.Error(), c.ending)) {
					t.Errorf("got %q, %v", id, err)
				}
				if took < c.took || took > c.took+2*nodePoll {
					t.Errorf("took %v, want %v", took, c.took)
				}
				if said := stderr.String(); strings.Count(said, "\n") != min(len(c.says), 1) || !strings.Contains(said, c.says) {
					t.Errorf("said %q", said)
				}
				if c.ending == may || c.ending == not {
					wantRow(t, "the node of run, submit or rerun", exitFailure)
				}
				all, _ := node.Jobs(t.Context(), false)
				if len(all) != c.jobs || node.sent != c.sent {
					t.Errorf("%d jobs, %d chunks sent, want %d, %d", len(all), node.sent, c.jobs, c.sent)
				}
			})
		})
	}
}
