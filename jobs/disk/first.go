package disk

// Taken is what somebody's files take, and may take, in bytes.
type Taken struct{ Used, Limit int64 } // no limit = 0

// littleUse is what nobody is ended for: it makes no room.
const littleUse = 1 << 20

// beyond is how much more than its limit somebody takes. Who has none has asked for
// nothing.
func (t Taken) beyond() int64 { return max(t.Used-t.Limit, 0) }

// First returns the place of whoever is to make room first, or -1 if nobody takes what is
// worth it: who is furthest beyond its limit; if nobody is, who takes most.
func First(list []Taken) int {
	first := -1
	for i, t := range list {
		if t.Used < littleUse {
			continue
		}
		if first < 0 || t.beyond() > list[first].beyond() || t.beyond() == list[first].beyond() && t.Used > list[first].Used {
			first = i
		}
	}
	return first
}
