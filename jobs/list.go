package jobs

import (
	"fmt"
	"slices"
	"strings"
)

// ListEnded is how many jobs that have ended are listed if nothing is said.
const ListEnded = 1000

// Shared is how many characters two IDs have in common at their beginning.
func Shared(a, b ID) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// Only returns the job that ref names, if it is the only one; the error of an
// ambiguous one lists them.
func Only(ref string, found []ID) (ID, error) {
	if len(found) == 1 {
		return found[0], nil
	}
	slices.Sort(found)
	const most = 5
	list := Distinct(found)
	text := strings.Join(list[:min(len(list), most)], ", ")
	if len(list) > most {
		text += fmt.Sprintf(" or one of %d more", len(list)-most)
	}
	return "", fmt.Errorf("job %.40q is %w: it could be %s", ref, ErrAmbiguous, text)
}
