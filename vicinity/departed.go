package vicinity

import "slices"

// maxDeparted bounds of how many nodes it is remembered where they were.
const maxDeparted = 256

// departed is where nodes were that are no members any more: what is to take their place is looked for
// near there. It holds the latest of them.
type departed struct {
	at    map[ID]bearings
	order []ID // the one that left first comes first
}

// add notes where a node was, if that is known.
func (d *departed) add(id ID, at bearings) {
	if len(at) == 0 {
		return
	}
	d.remove(id)
	if len(d.order) == maxDeparted {
		d.remove(d.order[0])
	}
	if d.at == nil {
		d.at = map[ID]bearings{}
	}
	d.at[id], d.order = at, append(d.order, id)
}

// remove forgets a node, which is a member again and may be elsewhere.
func (d *departed) remove(id ID) {
	if _, ok := d.at[id]; ok {
		delete(d.at, id)
		d.order = slices.DeleteFunc(d.order, func(other ID) bool { return other == id })
	}
}
