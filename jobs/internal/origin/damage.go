package origin

import (
	"errors"
	"maps"
	"os"
	"slices"
	"time"

	"zorilla/jobs"
)

// checkRate is how many bytes a second of stored output are read when the node
// starts: others want the disk too.
const checkRate = 64 << 20

// CheckStored reads the output of the jobs in memory that have ended, so that it is
// known what the disk lost before somebody asks for it. It waits for the loop.
func (o *Jobs) CheckStored() {
	ended := map[jobs.ID]*job{}
	o.loop.Call(func() {
		for j := range o.table.whole() {
			if j.Primary.Rec.State.Final() {
				ended[j.Primary.Rec.ID] = j
			}
		}
	})
	for _, id := range slices.Sorted(maps.Keys(ended)) {
		l := ended[id].output
		err := l.Read(o.loop.Leaving, false, func(jobs.RankAttempt) bool { return true }, func(jobs.Output) error { return o.loop.Leaving.Err() })
		if o.loop.Leaving.Err() != nil {
			return
		}
		if errors.Is(err, os.ErrNotExist) { // forgotten meanwhile
			continue
		}
		if err != nil {
			o.log.Error().Err(err).Msgf("read the output of job %s", id.Short())
		}
		_ = o.table.damaged(ended[id], -1) // told there
		size, _, _ := l.Spool.State()
		select {
		case <-time.After(time.Duration(size) * time.Second / checkRate):
		case <-o.loop.Leaving.Done():
			return
		}
	}
}
