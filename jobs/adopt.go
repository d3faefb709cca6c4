package jobs

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"zorilla/internal/atomicfile"
	"zorilla/internal/codec"
	"zorilla/jobs/process"
	"zorilla/transfer"
)

// claimFile, in a worker's own directory, holds its claimRecord.
const claimFile = "claim"

// claimRecord is what a node must know of a worker to go on with it in its next
// life. It is written when the worker is prepared, and again, and made durable,
// before the worker starts.
type claimRecord struct {
	Version int      `json:"version"`
	Job     ID       `json:"job"`
	Addrs   []string `json:"addrs"` // of its origin
	RankAttempt
	Spec  Spec      `json:"spec"`
	GPUs  []int     `json:"gpus,omitempty"` // numbers of those that are its own
	Stamp Stamp     `json:"stamp"`
	Since time.Time `json:"since"`           // when this node was granted the job
	Start *Start    `json:"start,omitempty"` // nil = it may not have started
	At    time.Time `json:"at"`              // of Start
	// Lost says why it did not begin here, and will not.
	Lost string `json:"lost,omitempty"`
}

const claimVersion = 2

// check refuses what this version did not write, or does not understand.
func (c *claimRecord) check() error {
	switch {
	case c.Version != claimVersion:
		return fmt.Errorf("claim of version %d, this node understands only %d", c.Version, claimVersion)
	case len(c.GPUs) > MaxGPUs || slices.ContainsFunc(c.GPUs, func(i int) bool { return i < 0 }):
		return fmt.Errorf("claim: GPUs: %w", codec.ErrMalformed)
	case !c.Job.Valid(), c.Rank >= c.Spec.Workers():
		return fmt.Errorf("claim: %w", codec.ErrMalformed)
	case c.Start != nil && c.Start.check() != nil:
		return c.Start.check()
	}
	if err := checkAddrs(c.Addrs); err != nil {
		return err
	}
	if err := checkRanks([]RankAttempt{c.RankAttempt}); err != nil {
		return err
	}
	return c.Spec.Validate()
}

// loadClaim reads the claim of a worker's directory.
func loadClaim(root string) (claimRecord, error) {
	var c claimRecord
	path := filepath.Join(root, claimFile)
	info, err := os.Lstat(path)
	if err != nil {
		return c, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxBody {
		return c, fmt.Errorf("%s: want a file of at most %d bytes", path, maxBody)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return c, err
	}
	if b, err = codec.Unseal(b); err != nil {
		return c, err
	}
	if err := codec.Unmarshal(b, &c); err != nil {
		return c, err
	}
	if err := c.check(); err != nil {
		return c, err
	}
	if name := rootName(c.Job, c.RankAttempt); name != filepath.Base(root) {
		return c, fmt.Errorf("claim of another worker: %s", name)
	}
	return c, nil
}

// keep writes down what the next life of this node must know of a worker; with
// start so that no failure of the machine takes it away.
func (w *work) keep(k *worker, root string, start *Start) error {
	w.mu.Lock()
	c := claimRecord{Version: claimVersion, Job: w.job, Addrs: w.addrs, RankAttempt: k.RankAttempt,
		Spec: w.spec, GPUs: k.gpus, Stamp: w.stamp, Since: w.since, Start: start, At: w.s.now()}
	if k.declined {
		c.Lost, c.GPUs = k.reason, nil
	}
	w.mu.Unlock()
	b, err := codec.Marshal(c)
	if err != nil {
		return err
	}
	how := atomicfile.How{}
	if start == nil { // a node that forgets it was not asked to start anything
		how.Sync = atomicfile.Loose
	}
	return how.Write(filepath.Join(root, claimFile), codec.Seal(b))
}

// adoptWork goes on with the workers of an earlier life of this node, and
// removes what is not theirs. It runs before the loop does, so that nothing is
// offered of what they use.
func (s *Service) adoptWork() error {
	roots, err := rootsIn(s.cfg.Work, s.self.ID)
	if err != nil {
		return err
	}
	for _, root := range slices.Sorted(maps.Keys(roots)) {
		if err := s.adoptRoot(root, roots[root]); err != nil {
			s.log.Error().Err(err).Msg("remove an old work directory")
		}
	}
	return nil
}

// adoptRoot goes on with the worker of a root, or removes what is left of it.
func (s *Service) adoptRoot(root string, kind rootKind) error {
	log := s.log.With().Str("dir", filepath.Base(root)).Logger()
	switch kind {
	case bare:
		return os.Remove(root) // nothing else, should there be something by now
	case copied:
		log.Warn().Msg("the copy of a worker's directory is removed: the worker is where the original is")
		return s.cfg.CleanRoot(root)
	}
	c, err := loadClaim(root)
	if err == nil && c.Start != nil {
		s.adopt(c)
		return nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		log.Warn().Err(err).Msg("a worker of before cannot be followed: it is ended")
	}
	if err == nil { // what is there of it goes when it is prepared anew; without its claim nobody would tell of it
		s.adopt(c)
		return nil
	}
	return s.cfg.CleanRoot(root)
}

// adopt makes the record of a worker again: of one that may run to follow it,
// of one that never started to prepare it anew.
func (s *Service) adopt(c claimRecord) {
	s.overlay.Learn(c.Job.Origin(), c.Addrs)
	s.clock.saw(c.Stamp, s.now())
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.works[c.Job]
	fresh := w == nil
	if fresh {
		w = s.newWork(c.Job.Origin(), &Grant{Job: c.Job, Addrs: c.Addrs, Spec: c.Spec, Stamp: c.Stamp}, c.Since)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	k := w.newWorker(c.RankAttempt)
	k.gpus = c.GPUs
	s.claims.adopted(&c, s.now())
	if fresh {
		s.children.Go(func() { w.knowInputs(k) })
		s.children.Go(w.report)
	}
	switch {
	case c.Lost != "":
		k.state, k.declined, k.reason = WorkerLost, true, c.Lost
		s.children.Go(func() { w.part(k, w.root(k.RankAttempt)) })
		return
	case c.Start == nil:
		s.children.Go(func() { w.run(k) })
		return
	}
	k.state, k.adopted, k.started = WorkerRunning, true, true
	epoch := toldEpoch(w.root(k.RankAttempt), c.Start)
	s.children.Go(func() { w.resume(k, epoch) })
}

// adopted counts a worker of an earlier life of this node.
func (c *claims) adopted(r *claimRecord, now time.Time) {
	c.claim(earlier(r.At, now), r.Job, 1, &r.Spec)
	for _, i := range r.GPUs {
		c.gpus[i]++
	}
}

// resume is the life on this node of a worker that an earlier life started.
func (w *work) resume(k *worker, epoch int64) {
	root := w.root(k.RankAttempt)
	proc, err := w.s.cfg.Runner.Adopt(w.s.stoppedCtx, root)
	switch {
	case err == nil:
		since := w.s.now()
		if why := w.follow(k, root, proc, epoch); why != "" && w.notBegun(k, root, why, since) {
			w.run(k)
			return
		}
	case errors.Is(err, process.ErrNotStarted): // the origin will say again that it may
		w.set(k, func() { k.state, k.started, k.adopted = WorkerPreparing, false, false })
		w.run(k)
		return
	case errors.Is(err, process.ErrLost):
		w.lose(k, strings.TrimPrefix(err.Error(), process.ErrLost.Error()+": "))
	case w.s.stoppedCtx.Err() == nil:
		w.lose(k, err.Error())
	}
	w.part(k, root)
}

// knowInputs finds out what the inputs were, which for workers that have them
// already costs no look at the network.
func (w *work) knowInputs(first *worker) {
	w.mu.Lock()
	inputs := w.spec.Inputs
	w.mu.Unlock()
	tree, err := transfer.LoadManifest(w.s.store, inputs)
	if inputs.IsZero() || err != nil {
		w.fetchInputs(first)
		return
	}
	w.s.store.Pin(w.pinInputs(), append(tree.Chunks(), inputs)...)
	missing := false
	for _, h := range tree.Chunks() {
		missing = missing || !w.s.store.Has(h)
	}
	w.tree = tree
	if missing {
		w.fetchInputs(first)
		return
	}
	close(w.fetched)
}
