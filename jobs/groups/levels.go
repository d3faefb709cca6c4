package groups

import (
	"fmt"
	"slices"
	"strings"
)

// None is the colour of a process at a level at which it is in no link; an MPI program passes
// MPI_UNDEFINED there.
const None = -1

// Depth returns how many levels the links have: in so many a process can be at most.
func (t *Topology) Depth() (depth int) {
	for i := range t.Groups {
		depth = max(depth, len(t.Chain(i)))
	}
	return depth
}

// Colours returns the colour of the processes of a group at each level, the widest first: the place
// of the link that they are in there, from 0, or None. Processes have the same colour at a level if
// they are in the same link there, so that it serves as that of MPI_Comm_split.
func (t *Topology) Colours(group int) []int {
	chain := t.Chain(group)
	return append(chain, slices.Repeat([]int{None}, t.Depth()-len(chain))...)
}

// ColourText is how an environment variable has Colours: NAME:COLOUR of each level, or - for None.
func (t *Topology) ColourText(group int) string {
	var list []string
	for _, c := range t.Colours(group) {
		if c == None {
			list = append(list, "-")
			continue
		}
		list = append(list, fmt.Sprintf("%s:%d", t.Links[c].Name, c))
	}
	return strings.Join(list, " ")
}
