package jobs

// Needs is what one worker takes of its node while it lives.
type Needs struct {
	Slots  int
	Memory int64 // bytes; 0 = not said
	Disk   int64 // bytes, as memory
	GPUs   int
}

// Needs is what one worker of the job needs.
func (s *Spec) Needs() Needs {
	return Needs{Slots: s.Slots, Memory: s.Memory, Disk: s.Disk, GPUs: s.GPUs}
}
