package jobs

import (
	"zorilla/flood"
	"zorilla/vicinity"
)

// step is what a method of primary leaves for the shell: effects are released
// once the events before them are on disk.
type step struct {
	events  []event
	effects []effect
}

// effect is something to be done outside of the core.
type effect interface{ isEffect() }

type (
	doFlood struct {
		ad     Advertisement
		radius int
	}
	doExtend struct {
		flood flood.Flood
		rim   []flood.Reach
	}
	doProbe struct{ id vicinity.ID } // have the RTT measured
	// doMeasure has a node measure the round trips to others for a job; paired
	// takes what comes of it.
	doMeasure struct {
		from  vicinity.ID
		nodes []vicinity.ID
	}
	doGrant struct {
		to    vicinity.ID
		grant Grant
	}
	doStart struct {
		to    vicinity.ID
		start Start
	}
	doRelease struct {
		to      vicinity.ID
		release Release
	}
	doYield struct { // a hold is not needed (now)
		to     vicinity.ID
		job    ID
		forget bool // nor is another one
	}
	doCollect struct {
		from   vicinity.ID
		output RankOutput
	}
	// doAccepted tells who has submitted the job that it is durable.
	doAccepted struct{}
	// doAnswer answers a request: what came before it is durable.
	doAnswer struct {
		to     vicinity.ID
		number uint64 // of the request
		ack    Ack
	}
)

func (doFlood) isEffect()    {}
func (doExtend) isEffect()   {}
func (doProbe) isEffect()    {}
func (doMeasure) isEffect()  {}
func (doGrant) isEffect()    {}
func (doStart) isEffect()    {}
func (doRelease) isEffect()  {}
func (doYield) isEffect()    {}
func (doCollect) isEffect()  {}
func (doAccepted) isEffect() {}
func (doAnswer) isEffect()   {}
