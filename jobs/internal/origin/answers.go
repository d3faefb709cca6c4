package origin

import (
	"zorilla/jobs/internal/primary"
	"zorilla/jobs/internal/wire"
)

// answers are what requests wait for until all before is durable.
type answers struct {
	waiting map[uint64]chan<- wire.Ack // by the numbers of requests; each has room for one
	number  uint64                     // of the last of them
}

// expect returns the number under which the answer to a request comes.
func (a *answers) expect(answer chan<- wire.Ack) uint64 {
	a.number++
	a.waiting[a.number] = answer
	return a.number
}

// give hands an answer to who waits for it.
func (a *answers) give(e primary.DoAnswer) {
	a.waiting[e.Number] <- e.Ack
	delete(a.waiting, e.Number)
}
