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
	"zorilla/transfer"
)

// submit brings a job to its origin, however long that takes, and cancels it if
// it is to be.
func (p *play) submit(ctx context.Context, j *order) {
	inputs, err := p.inputs(j)
	if err != nil {
		p.blame("inputs of job %d: %v", j.number, err)
		return
	}
	if j.after >= 0 {
		other, err := p.idOf(ctx, j.after)
		if err != nil {
			return // the end of the story
		}
		j.spec.After = []jobs.Dependency{{Kind: j.depend, Job: other}}
	}
	h := p.host(j.origin)
	for tries := 0; ctx.Err() == nil; tries++ {
		id, err := p.hand(ctx, h, j, inputs, tries > 0)
		if err == nil {
			p.mu.Lock()
			p.ids[j.number] = id
			p.mu.Unlock()
			p.log(j.origin, "job %d is %s: %s, -n %d..%d -c %d", j.number, id, j.kind, j.spec.Min, j.spec.Max, j.spec.Slots)
			if j.cancel > 0 {
				p.cancel(ctx, j, id)
			}
			if j.prog.stdin > 0 {
				p.feed(ctx, h, j, id)
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

// hand tries once. What a node accepted before it died is found by its name.
func (p *play) hand(ctx context.Context, h *host, j *order, inputs []transfer.Input, again bool) (jobs.ID, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	client := h.client()
	if again {
		list, err := client.Jobs(ctx, false)
		if err != nil {
			return "", err
		}
		for _, st := range list {
			if st.Spec.Name == j.spec.Name && h.owns(&st) {
				return st.ID, nil
			}
		}
	}
	spec := j.spec
	var err error
	if spec.Inputs, err = api.Push(ctx, client, inputs); err != nil {
		return "", err
	}
	return client.Submit(ctx, spec)
}

// inputs writes a job's input files.
func (p *play) inputs(j *order) (list []transfer.Input, err error) {
	dir := filepath.Join(p.lab, "inputs", j.prog.key)
	add := func(name string, content []byte) {
		path := filepath.Join(dir, name)
		list = append(list, transfer.Input{Path: path, Name: name})
		err = errors.Join(err, os.WriteFile(path, content, 0o644))
	}
	if !j.prog.in && !j.prog.lined {
		return nil, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if j.prog.in {
		add("data", j.prog.input())
	}
	if j.prog.lined {
		var b bytes.Buffer
		for id := 1; id <= j.spec.Array.Count(); id++ {
			fmt.Fprintln(&b, j.prog.line(id))
		}
		add(jobs.ArrayLines, b.Bytes())
	}
	return list, err
}

// idOf waits until a job of the story has been accepted.
func (p *play) idOf(ctx context.Context, number int) (jobs.ID, error) {
	for ctx.Err() == nil {
		p.mu.Lock()
		id := p.ids[number]
		p.mu.Unlock()
		if id != "" {
			return id, nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return "", ctx.Err()
}

// cancel cancels a job at some node, which need not be its origin.
func (p *play) cancel(ctx context.Context, j *order, id jobs.ID) {
	select {
	case <-time.After(j.cancel):
	case <-ctx.Done():
		return
	}
	for tries := j.number; ctx.Err() == nil; tries++ {
		h := p.hosts[tries%len(p.hosts)]
		try, cancel := context.WithTimeout(ctx, 5*time.Second)
		err := h.client().Cancel(try, string(id))
		cancel()
		if err == nil {
			p.log(h.name, "job %d is cancelled", j.number)
			return
		}
		if errors.Is(err, api.ErrNotFound) {
			p.blame("cancel job %d at %s: %v", j.number, h.name, err)
			return
		}
		time.Sleep(300 * time.Millisecond)
	}
}

// feed gives a job its standard input. If its origin dies meanwhile the input ends
// there.
func (p *play) feed(ctx context.Context, h *host, j *order, id jobs.ID) {
	err := h.client().Stdin(ctx, string(id), &slowly{ctx, j.prog.feed()})
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

// watch looks how the jobs of an origin are. What it has told of an end it must
// tell for ever.
func (p *play) watch(ctx context.Context, h *host) {
	seen := map[jobs.ID]bool{}
	for ctx.Err() == nil {
		try, cancel := context.WithTimeout(ctx, 3*time.Second)
		list, err := h.client().Jobs(try, false)
		cancel()
		if h.gone() {
			p.blame("the node of %s ended by itself: %s", h.name, h.lastWords(8))
			return
		}
		if err == nil {
			p.note(h, list, seen)
		}
		time.Sleep(lookEvery)
	}
}

func (p *play) note(h *host, list []jobs.Status, seen map[jobs.ID]bool) {
	told := map[jobs.ID]bool{}
	for _, st := range list {
		if st.LastKnown || !h.owns(&st) {
			continue
		}
		told[st.ID] = true
		p.mu.Lock()
		before, ended := p.ends[st.ID]
		if !ended && st.State.Final() {
			p.ends[st.ID] = st
		}
		p.mu.Unlock()
		switch {
		case ended && (before.State != st.State || before.ExitCode != st.ExitCode || before.Reason != st.Reason):
			p.blame("%s told that %s ended %s with %d (%s), and now %s with %d (%s)", h.name, st.ID, before.State, before.ExitCode, before.Reason, st.State, st.ExitCode, st.Reason)
		case !ended && st.State.Final():
			p.log(h.name, "%s (%s) ended %s with %d after %s %s", st.ID, st.Spec.Name, st.State, st.ExitCode, seconds(st.Ended.Sub(st.Submitted)), st.Reason)
		}
	}
	for id := range seen {
		if !told[id] {
			p.blame("%s has forgotten job %s", h.name, id)
			delete(seen, id)
		}
	}
	for id := range told {
		seen[id] = true
	}
}
