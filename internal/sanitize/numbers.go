package sanitize

import (
	"strconv"
	"strings"
)

// maxRuns bounds what Numbers writes.
const maxRuns = 20

// Numbers writes numbers that rise: "1 to 3, 7, 8".
func Numbers(list []int) string {
	var runs []string
	for i := 0; i < len(list); {
		end := i
		for end+1 < len(list) && list[end+1] == list[end]+1 {
			end++
		}
		if end == i+1 { // two are no run
			end = i
		}
		if len(runs) == maxRuns {
			return strings.Join(append(runs, "..."), ", ")
		}
		run := strconv.Itoa(list[i])
		if end > i {
			run += " to " + strconv.Itoa(list[end])
		}
		runs, i = append(runs, run), end+1
	}
	return strings.Join(runs, ", ")
}
