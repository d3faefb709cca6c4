package origin

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"zorilla/jobs"
)

// checkRate is how many bytes a second of stored output are read when the node
// starts: others want the disk too.
const checkRate = 64 << 20

// damage lists what the disk lost of a job.
func (j *job) damage(worker int) []string {
	list := j.output.Damage(&j.Primary.Rec, worker)
	if broken := j.Primary.Rec.Broken; broken != "" {
		list = append([]string{"its journal: " + broken}, list...)
	}
	return list
}

// lost reports what the disk lost of a job, in one line, if anything.
func (j *job) lost() []string {
	if list := j.damage(-1); len(list) > 0 {
		return []string{fmt.Sprintf("job %s is damaged: %s", j.Primary.Rec.ID.Short(), strings.Join(list, "; "))}
	}
	return nil
}

// damaged returns what was found to be lost of a job's output as an error. What is
// found for the first time is told to the job's watchers, and to the owner. It waits
// for the loop.
func (o *Jobs) damaged(j *job, worker int) error {
	var list []string
	ok := o.loop.Call(func() {
		if all := j.damage(-1); len(all) > j.toldLost {
			j.toldLost = len(all)
			j.Primary.Version++
			o.disk.logLost(j.lost())
			o.loop.Notify()
		}
		list = j.damage(worker)
	})
	switch {
	case !ok:
		return jobs.ErrStopped
	case len(list) == 0:
		return nil
	}
	return fmt.Errorf("job %s is %w: %s", j.Primary.Rec.ID.Short(), jobs.ErrDamaged, strings.Join(list, "; "))
}

// CheckStored reads the output of the jobs in memory that have ended, so that it is
// known what the disk lost before somebody asks for it. It waits for the loop.
func (o *Jobs) CheckStored() {
	ended := map[jobs.ID]*job{}
	o.loop.Call(func() {
		for id, j := range o.table.jobs {
			if j.Primary.Rec.State.Final() {
				ended[id] = j
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
		_ = o.damaged(ended[id], -1) // told there
		size, _, _ := l.Spool.State()
		select {
		case <-time.After(time.Duration(size) * time.Second / checkRate):
		case <-o.loop.Leaving.Done():
			return
		}
	}
}
