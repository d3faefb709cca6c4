package described

import (
	"fmt"
	"strings"

	"zorilla/jobs"
)

// maxSpares bounds how many nodes are named.
const maxSpares = 8

// Spares reports which nodes keep spares of a job that runs, and how many there are of those that it wants; "" if it
// wants none.
func Spares(st *jobs.Status) string {
	if st.Spec.Spares == 0 || st.State != jobs.Running {
		return ""
	}
	have, names := 0, []string{}
	for _, s := range st.Spares {
		if have += s.Workers; len(names) == maxSpares {
			continue
		}
		name := jobs.Label(s.Name, s.Node)
		if s.Workers > 1 {
			name = fmt.Sprintf("%d on %s", s.Workers, name)
		}
		if !s.Ready {
			name += " (fetches inputs)"
		}
		names = append(names, name)
	}
	if more := len(st.Spares) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return strings.TrimSuffix(fmt.Sprintf("%d of %d: %s", have, st.Spec.Spares, strings.Join(names, ", ")), ": ")
}
