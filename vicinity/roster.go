package vicinity

// Roster is a set of member IDs from which one can be drawn at random. It is
// not guarded; many cores of a simulation may share one.
type Roster struct {
	ids   []ID
	index map[ID]int
}

// Add puts id into the set and reports whether it was new.
func (r *Roster) Add(id ID) bool {
	if r.Has(id) {
		return false
	}
	if r.index == nil {
		r.index = make(map[ID]int)
	}
	r.index[id] = len(r.ids)
	r.ids = append(r.ids, id)
	return true
}

// Remove takes id out of the set and reports whether it was in it.
func (r *Roster) Remove(id ID) bool {
	i, ok := r.index[id]
	if !ok {
		return false
	}
	last := r.ids[len(r.ids)-1]
	r.ids[i] = last
	r.index[last] = i
	r.ids = r.ids[:len(r.ids)-1]
	delete(r.index, id)
	return true
}

// Has reports whether id is in the set.
func (r *Roster) Has(id ID) bool { _, ok := r.index[id]; return ok }

// Len returns the number of IDs.
func (r *Roster) Len() int { return len(r.ids) }

// At returns the ID at a place from 0 to Len()-1. Places change with Remove.
func (r *Roster) At(i int) ID { return r.ids[i] }
