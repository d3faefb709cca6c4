package jobs

// Erasing forgets a job in memory, and returns what is to be done on disk.
func (s *Service) Erasing(id ID, remove bool) (steps []func() error) {
	s.call(func() {
		steps = s.eraseSteps([]erasure{s.forget(s.archive.all[id], remove)}, func(error) {})
	})
	return steps
}
