package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"zorilla/jobs"
	"zorilla/node/api"
	"zorilla/testnet/hosts/lab"
	"zorilla/transfer"
)

// submit brings a job to its origin, however long that takes, and cancels it if
// it is to be.
func (p *play) submit(ctx context.Context, j *order) {
	inputs, err := j.inputs(filepath.Join(p.dir, "inputs", j.prog.Key))
	if err != nil {
		p.blame("inputs of job %d: %v", j.number, err)
		return
	}
	if j.after >= 0 {
		for p.idOf(j.after) == "" {
			if !p.pause(ctx, time.Since(p.begin)+100*time.Millisecond) {
				return // the end of the story
			}
		}
		j.spec.After = []jobs.Dependency{{Kind: j.depend, Job: p.idOf(j.after)}}
	}
	n := p.node(j.origin)
	for ctx.Err() == nil {
		id, err := j.hand(ctx, n, inputs)
		if err == nil {
			p.accepted(j, id)
			if j.cancel > 0 {
				p.cancel(ctx, j, id)
			}
			if j.prog.Stdin > 0 {
				p.feed(ctx, n, j, id)
			}
			return
		}
		if !errors.Is(err, api.ErrUnavailable) && !errors.Is(err, api.ErrNoNode) && !errors.Is(err, context.DeadlineExceeded) {
			p.blame("job %d was refused by %s: %v", j.number, j.origin, err)
			return
		}
		time.Sleep(300 * time.Millisecond)
	}
}

// hand tries once. What a node accepted before it died is found by its key.
func (j *order) hand(ctx context.Context, n *lab.Node, inputs []transfer.Input) (jobs.ID, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	spec := j.spec
	spec.Key = j.prog.Key
	var err error
	if spec.Inputs, err = api.Push(ctx, n.Client, inputs, nil); err != nil {
		return "", err
	}
	return n.Client.Submit(ctx, spec)
}

// inputs writes a job's input files into a directory of its own.
func (j *order) inputs(dir string) (list []transfer.Input, err error) {
	add := func(name string, content []byte) {
		path := filepath.Join(dir, name)
		list = append(list, transfer.Input{Path: path, Name: name})
		err = errors.Join(err, os.WriteFile(path, content, 0o644))
	}
	if j.prog.In == 0 && !j.prog.Lined {
		return nil, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if j.prog.In > 0 {
		add("data", j.prog.input())
	}
	if j.prog.Lined {
		var b bytes.Buffer
		for id := 1; id <= j.spec.Array.Count(); id++ {
			fmt.Fprintln(&b, j.prog.line(id))
		}
		add(jobs.ArrayLines, b.Bytes())
	}
	return list, err
}

// cancel cancels a job at some node, which need not be its origin.
func (p *play) cancel(ctx context.Context, j *order, id jobs.ID) {
	select {
	case <-time.After(j.cancel):
	case <-ctx.Done():
		return
	}
	for tries := j.number; ctx.Err() == nil; tries++ {
		n := p.nodes[tries%len(p.nodes)]
		try, cancel := context.WithTimeout(ctx, 5*time.Second)
		err := n.Client.Cancel(try, string(id), false)
		cancel()
		if err == nil {
			p.log(n.Name, "job %d is cancelled", j.number)
			return
		}
		if errors.Is(err, api.ErrNotFound) {
			p.blame("cancel job %d at %s: %v", j.number, n.Name, err)
			return
		}
		time.Sleep(300 * time.Millisecond)
	}
}

// feed gives a job its standard input. If its origin dies meanwhile the input ends
// there.
func (p *play) feed(ctx context.Context, n *lab.Node, j *order, id jobs.ID) {
	err := n.Client.Stdin(ctx, string(id), &slowly{ctx, j.prog.feed()})
	if err == nil {
		return
	}
	p.log(j.origin, "job %d is not fed any more: %v", j.number, err)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.broken[id] = true
}

// slowly is bytes that come in pieces.
type slowly struct {
	ctx  context.Context
	left []byte
}

// Read returns the next piece after a while.
func (s *slowly) Read(b []byte) (int, error) {
	if len(s.left) == 0 {
		return 0, io.EOF
	}
	select {
	case <-time.After(50 * time.Millisecond):
	case <-s.ctx.Done():
		return 0, s.ctx.Err()
	}
	n := copy(b, s.left[:min(len(s.left), 100_000)])
	s.left = s.left[n:]
	return n, nil
}
