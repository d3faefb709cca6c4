package agent

import (
	"time"

	"zorilla/internal/stall"
)

// A node whose disk hangs lives: its loop waits for no disk, so that it reports and answers as
// ever, and what it was granted would never begin. So it writes a little to its disk now and then,
// and gives back what has not begun when that is not done in time. The steps that it takes for
// workers do not tell: laying out many files may well take minutes. While nothing is here for a
// job there is nothing to lose, and the disk is left asleep.
const (
	// touchEvery is between two such writes.
	touchEvery = 5 * time.Second
	// hangsAfter is more than a small write waits behind those of others on a slow disk.
	hangsAfter = 10 * time.Second
	touchLook  = time.Second
)

// watchAnswers looks whether the disk answers, until the node leaves.
func watchAnswers(s *Service) {
	look := time.NewTicker(touchLook)
	defer look.Stop()
	answered := make(chan struct{}, 1)
	var late stall.Guard
	var begun time.Time
	waits, hangs := false, false
	for {
		select {
		case <-look.C:
		case <-answered:
			if waits = false; hangs {
				hangs = false
				s.log.Info().Msgf("the disk answers again, after %v", time.Since(begun).Round(time.Second))
				s.loop.Post(func() { s.core.Part.Answers(time.Now(), true) })
			}
			continue
		case <-s.loop.Leaving.Done():
			return
		}
		now := time.Now()
		switch {
		case waits && !hangs && late.Passed(now, begun.Add(hangsAfter)):
			hangs = true
			s.log.Error().Msgf("the disk has not answered for %v: this node offers nothing until it does, and gives back what has not begun",
				now.Sub(begun).Round(time.Second))
			s.loop.Post(func() { s.core.Part.Answers(time.Now(), false) })
		case !waits && now.Sub(begun) >= touchEvery && atWork(s):
			waits, begun = true, now
			s.loop.Go(func() {
				if err := s.cfg.Disk.Touch(); err != nil { // that is an answer, too
					s.log.Debug().Err(err).Msg("touch the disk")
				}
				answered <- struct{}{}
			})
		}
	}
}

// atWork reports whether anything is here for a job, or offered to one.
func atWork(s *Service) (yes bool) {
	s.loop.Call(func() { yes = len(s.core.Part.Works) > 0 || s.core.Claims.HeldSlots() > 0 })
	return yes
}
