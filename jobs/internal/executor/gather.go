package executor

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"zorilla/internal/sanitize"
	"zorilla/jobs"
	"zorilla/jobs/disk"
	"zorilla/jobs/internal/participant"
	"zorilla/transfer"
)

// Between two tries to store the files of a worker on a disk that is full: each reads them from
// the beginning.
const (
	firstGathering   = 500 * time.Millisecond
	longestGathering = 8 * time.Second
)

// diskFull is why a worker waits: with its output, or its files.
const diskFull = "the disk of its node is full"

// gatherer stores the files of workers that have ended.
type gatherer struct {
	cfg     *Config
	leaving context.Context
	sharing *sharing
	root    func(participant.WorkerID) string
	// waits reports what a worker waits for, or "", and reports whether it is still wanted.
	waits func(id participant.WorkerID, why string) (wanted bool)
}

// gather chunks the output files into the store, pinned until the origin has
// them. On a full disk it tries again, as long as somebody wants them and the worker's time
// has not passed.
func (g *gatherer) gather(e participant.DoGather, in *inputs) (*jobs.RankOutput, []string, error) {
	if last, err := g.sharing.last(e.Worker, g.root(e.Worker)); err != nil || !last {
		return nil, nil, err
	}
	waited := false
	for pause := firstGathering; ; pause = min(2*pause, longestGathering) {
		out, warn, err := g.store(e, in, false)
		switch {
		case !disk.IsFull(err):
			if waited {
				g.waits(e.Worker, "")
			}
			return out, warn, err
		case !g.waits(e.Worker, diskFull), !e.Until.IsZero() && time.Now().After(e.Until):
			return g.store(e, in, true)
		}
		waited = true
		select {
		case <-time.After(pause):
		case <-g.leaving.Done():
			return nil, nil, g.leaving.Err()
		}
	}
}

// store is a try to gather; it may be the last.
func (g *gatherer) store(e participant.DoGather, in *inputs, last bool) (*jobs.RankOutput, []string, error) {
	var tree transfer.Manifest
	var warn []string
	if in != nil {
		<-in.done
		if tree = in.tree; in.failed != nil && len(tree.Entries) == 0 {
			warn = append(warn, "what its inputs were is not known any more: some of them may be among the outputs")
		}
	}
	put := transfer.PinTo(g.cfg.Store, outputPin(e.Worker))
	dir := filepath.Join(g.sharing.around(e.Worker, g.root(e.Worker)), workDir)
	if len(e.Outputs) == 0 {
		return g.cfg.gatherLeft(g.leaving, e, dir, put, &tree, e.Worker.Rank == 0 || g.sharing.dir(e.Worker) != nil, last)
	}
	tree, more, err := transfer.Collect(g.leaving, put, dir, e.Outputs, &tree)
	var hash transfer.Hash
	if err == nil {
		hash, err = transfer.SaveManifest(put, tree)
	}
	warn = labelled(e.Who, append(warn, more...))
	if err != nil {
		err = fmt.Errorf("its outputs are lost: %w", err)
		return nil, append(warn, sanitize.OneLine(fmt.Sprintf("%s: %v", e.Who, err))), err
	}
	return &jobs.RankOutput{Rank: e.Worker.Rank, Attempt: e.Worker.Attempt, Manifest: hash, Files: tree.Files(), Bytes: tree.Size()}, warn, nil
}
