package agent

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"zorilla/jobs/internal/participant"
)

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
	c, err := participant.LoadClaim(root)
	switch {
	case err == nil:
		s.overlay.Learn(c.Job.Origin(), c.Addrs)
		if _, err := s.pin(inputsPin(c.Job), c.Spec.Inputs); err != nil { // until DoForgetWork
			log.Debug().Err(err).Msg("what the inputs of a worker were is not here")
		}
		s.core.Adopt(s.now(), c)
		return nil
	case !errors.Is(err, os.ErrNotExist):
		log.Warn().Err(err).Msg("a worker of before cannot be followed: it is ended")
	}
	return s.cfg.CleanRoot(root)
}
