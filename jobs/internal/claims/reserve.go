package claims

// Reserve is what is kept free of the disk.
type Reserve struct {
	Keep int64 // bytes
	Full bool  // less than that was free, and no tenth more since
}

// look returns how much of what is free is for workers.
func (r *Reserve) look(free int64) (forWorkers int64) {
	forWorkers = max(free-r.Keep, 0)
	r.Full = free < r.Keep || r.Full && forWorkers < r.Keep/10
	return forWorkers
}
