package primary

import (
	"zorilla/flood"
	"zorilla/jobs"
	"zorilla/jobs/internal/record"
	"zorilla/jobs/internal/wire"
	"zorilla/vicinity"
)

// step is what a method of primary leaves for the shell: effects are released
// once the events before them are on disk.
type step struct {
	Events  []record.Event
	Effects []Effect
}

// Effect is something to be done outside of the core.
type Effect interface{ IsEffect() }

type (
	DoFlood struct {
		Ad     wire.Advertisement
		Radius int
	}
	DoExtend struct {
		Flood flood.Flood
		Rim   []flood.Reach
	}
	DoProbe struct{ ID vicinity.ID } // have the RTT measured
	// DoMeasure has a node measure the round trips to others for a job; paired
	// takes what comes of it.
	DoMeasure struct {
		From  vicinity.ID
		Nodes []vicinity.ID
	}
	DoGrant struct {
		To    vicinity.ID
		Grant wire.Grant
	}
	DoStart struct {
		To    vicinity.ID
		Start wire.Start
	}
	DoRelease struct {
		To      vicinity.ID
		Release wire.Release
	}
	DoYield struct { // a hold is not needed (now)
		To     vicinity.ID
		Job    jobs.ID
		Forget bool // nor is another one
	}
	DoCollect struct {
		From   vicinity.ID
		Output jobs.RankOutput
	}
	// DoAccepted tells who has submitted the job that it is durable.
	DoAccepted struct{}
	// DoAnswer answers a request: what came before it is durable.
	DoAnswer struct {
		To     vicinity.ID
		Number uint64 // of the request
		Ack    wire.Ack
	}
)

func (DoFlood) IsEffect()    {}
func (DoExtend) IsEffect()   {}
func (DoProbe) IsEffect()    {}
func (DoMeasure) IsEffect()  {}
func (DoGrant) IsEffect()    {}
func (DoStart) IsEffect()    {}
func (DoRelease) IsEffect()  {}
func (DoYield) IsEffect()    {}
func (DoCollect) IsEffect()  {}
func (DoAccepted) IsEffect() {}
func (DoAnswer) IsEffect()   {}
