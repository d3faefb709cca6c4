package proc

import (
	"runtime"
	"sync"
)

// Warm has the runtime of this process make so many threads at least, which stay: it ends
// the process if it needs one and the kernel has none left, because of workers that have
// forked all that their user, or the machine, may have.
func Warm(threads int) {
	var all sync.WaitGroup
	wait := make(chan struct{})
	for range threads {
		all.Add(1)
		go func() {
			runtime.LockOSThread()
			all.Done()
			<-wait
			runtime.UnlockOSThread()
		}()
	}
	all.Wait()
	close(wait)
}
