package jobs

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"zorilla/internal/atomicfile"
	"zorilla/internal/codec"
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

// write writes a claim into a worker's directory; one that lets the worker start so that
// no failure of the machine takes it away.
func (c *claimRecord) write(root string) error {
	b, err := codec.Marshal(c)
	if err != nil {
		return err
	}
	path := filepath.Join(root, claimFile)
	if c.Start == nil { // a node that forgets it was not asked to start anything
		return atomicfile.How{Loose: true}.Write(path, codec.Seal(b))
	}
	return atomicfile.Fill(path, codec.Seal(b))
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
	switch {
	case err == nil:
		s.overlay.Learn(c.Job.Origin(), c.Addrs)
		if _, err := s.pin(inputsPin(c.Job), c.Spec.Inputs); err != nil { // until doForgetWork
			log.Debug().Err(err).Msg("what the inputs of a worker were is not here")
		}
		s.core.adopt(s.now(), c)
		return nil
	case !errors.Is(err, os.ErrNotExist):
		log.Warn().Err(err).Msg("a worker of before cannot be followed: it is ended")
	}
	return s.cfg.CleanRoot(root)
}
