package jobs

// MaxCells bounds the picture of an array.
const MaxCells = 1000

// Letters of a picture: how a stretch of tasks stands.
const (
	CellWaits  = '.' // nobody has one of them
	CellRuns   = 'r' // a worker has some
	CellPartly = 'p' // some are done, the others wait
	CellDone   = 'd' // all have ended with 0
	CellFailed = 'f' // one or more have failed
)

// picture sums the tasks up in so many letters, each for a stretch of about the
// same length, in order; fewer if there are fewer tasks.
func (t *taskTable) picture(cells int) string {
	n := len(t.tasks)
	if cells = min(cells, MaxCells, n); cells <= 0 {
		return ""
	}
	begin := func(cell int) int { return (cell*n + cells - 1) / cells } // of the places whose cell it is
	letters := make([]byte, cells)
	for i := range letters {
		done := 0
		letters[i] = CellWaits
		for place := begin(i); place < begin(i+1); place++ {
			k := &t.tasks[place]
			if k.done {
				done++
			}
			if k.done && k.code != 0 {
				letters[i] = CellFailed
			}
		}
		switch {
		case letters[i] == CellFailed || done == 0:
		case done == begin(i+1)-begin(i):
			letters[i] = CellDone
		default:
			letters[i] = CellPartly
		}
	}
	for _, l := range t.leases {
		for _, r := range l.queue {
			for i := r.From * cells / n; i <= (r.From+r.Count-1)*cells/n; i++ {
				if letters[i] == CellWaits || letters[i] == CellPartly {
					letters[i] = CellRuns
				}
			}
		}
	}
	return string(letters)
}
