package record

import "zorilla/jobs"

// Picture sums the tasks up in so many letters, each for a stretch of about the
// same length, in order; fewer if there are fewer tasks.
func (t *TaskTable) Picture(cells int) string {
	n := len(t.Tasks)
	if cells = min(cells, jobs.MaxCells, n); cells <= 0 {
		return ""
	}
	begin := func(cell int) int { return (cell*n + cells - 1) / cells } // of the places whose cell it is
	letters := make([]byte, cells)
	for i := range letters {
		done := 0
		letters[i] = jobs.CellWaits
		for place := begin(i); place < begin(i+1); place++ {
			k := &t.Tasks[place]
			if k.Done {
				done++
			}
			if k.Done && k.Code != 0 {
				letters[i] = jobs.CellFailed
			}
		}
		switch {
		case letters[i] == jobs.CellFailed || done == 0:
		case done == begin(i+1)-begin(i):
			letters[i] = jobs.CellDone
		default:
			letters[i] = jobs.CellPartly
		}
	}
	for _, l := range t.Leases {
		for _, r := range l.queue {
			for i := r.From * cells / n; i <= (r.From+r.Count-1)*cells/n; i++ {
				if letters[i] == jobs.CellWaits || letters[i] == jobs.CellPartly {
					letters[i] = jobs.CellRuns
				}
			}
		}
	}
	return string(letters)
}
