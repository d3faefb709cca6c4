package origin

import (
	"path/filepath"
	"testing"

	"github.com/rs/zerolog"

	"zorilla/jobs"
	"zorilla/jobs/internal/loop"
	"zorilla/jobs/internal/output"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/internal/wire/wiretest"
	"zorilla/jobs/work"
)

// Output is durable before an exit, or results of tasks, can be recorded; what a worker
// writes meanwhile is not waited for, and what nobody owns any more is not kept.
func TestOutputIsDurableBeforeAnExit(t *testing.T) {
	ra := wiretest.RA(0, 1)
	for name, c := range map[string]struct {
		worker wire.WorkerReport
		owned  bool
		kept   bool
		loose  bool
	}{
		"runs":        {wire.WorkerReport{RankAttempt: ra, State: jobs.WorkerRunning}, true, true, true},
		"has ended":   {wire.WorkerReport{RankAttempt: ra, State: jobs.WorkerEnded}, true, true, false},
		"has results": {wire.WorkerReport{RankAttempt: ra, State: jobs.WorkerRunning, Tasks: &wire.WorkerTasks{Results: []byte{1}}}, true, true, false},
		"superseded":  {wire.WorkerReport{RankAttempt: ra, State: jobs.WorkerEnded}, false, false, false},
	} {
		log, err := output.Open(filepath.Join(t.TempDir(), "output"), wiretest.Job, true)
		if err != nil {
			t.Fatal(err)
		}
		j, in := &job{output: log}, &intake{loop: loop.New(zerolog.Nop())}
		rep := &wire.Report{Job: wiretest.Job, Workers: []wire.WorkerReport{c.worker},
			Output: []jobs.Output{{Rank: 0, Attempt: 1, Stream: work.Stdout, Data: []byte("hello\n")}}}
		if err := in.store(j, rep, map[jobs.RankAttempt]bool{ra: c.owned}); err != nil {
			t.Fatal(err)
		}
		kept := log.Received([]jobs.RankAttempt{ra})[ra].Stdout
		if (kept == 6) != c.kept || (log.Loosely() > 0) != c.loose {
			t.Errorf("%s: %d bytes are kept, %d are not durable", name, kept, log.Loosely())
		}
		log.Spool.Close()
	}
}
