package origin

import "zorilla/jobs"

// Erasing forgets a job in memory, and returns the steps in which eraseAll would erase
// it, for tests that stop between two of them. It waits for the loop.
func (o *Jobs) Erasing(id jobs.ID, remove bool) (steps []func() error) {
	o.loop.Call(func() {
		steps = o.disk.eraseSteps(o.table.forget([]row{*o.table.archive.find(id)}, remove), func(error) {})
	})
	return steps
}

// LostInput is lostInput for tests.
var LostInput = lostInput

// Whole tells how many jobs are in memory as a whole. It waits for the loop.
func (o *Jobs) Whole() (n int) {
	o.loop.Call(func() { n = len(o.table.jobs) })
	return n
}
