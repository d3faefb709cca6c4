package proc

import (
	"runtime"
	"sync"
)

// Warm has the runtime of this process make so many threads at least, which stay: it ends
// the process if it needs one and the kernel has none left, because of workers that have
// forked all that their user, or the machine, may have.
func Warm(threads int) {
	var made, free sync.WaitGroup
	wait := make(chan struct{})
	made.Add(threads)
	for range threads {
		free.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			made.Done()
			<-wait
		})
	}
	made.Wait()
	close(wait)
	free.Wait() // a thread is of use to others when its goroutine has let go of it
}
