package primary

import (
	"slices"
	"time"

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

// unsent takes back the START that is about to be sent to a participant, if there is
// one: the answer to the report that the participant waits for brings it, and comes as
// soon.
func (s *step) unsent(to vicinity.ID) (start wire.Start, found bool) {
	i := slices.IndexFunc(s.Effects, func(e Effect) bool {
		start, ok := e.(DoStart)
		return ok && start.To == to
	})
	if i < 0 {
		return start, false
	}
	start = s.Effects[i].(DoStart).Start
	s.Effects = slices.Delete(s.Effects, i, i+1)
	return start, true
}

// Effect is something to be done outside of the core.
type Effect interface{ ofPrimary() }

// What a primary wants done.
type (
	// DoFlood sends an advertisement to all nodes within the radius, 0 = to none, and to this
	// one: Sent, then its answer.
	DoFlood struct {
		Ad     wire.Advertisement
		Radius int
	}
	// DoAsk advertises the job to this node alone.
	DoAsk struct{ Ad wire.Advertisement }
	// DoExtend carries a flood on beyond nodes on its rim.
	DoExtend struct {
		Job   jobs.ID // under which nodes are asked
		Flood flood.Flood
		Rim   []flood.Reach
	}
	// DoProbe has the RTT to a node measured.
	DoProbe struct{ ID vicinity.ID }
	// DoMeasure has a node measure the round trips to others for a job: Paired.
	DoMeasure struct {
		From  vicinity.ID
		Nodes []vicinity.ID
	}
	// DoGrant grants ranks to a node: GrantFailed, if it refuses or does not answer.
	DoGrant struct {
		To     vicinity.ID
		Grant  wire.Grant
		Within time.Duration // it is to be answered
	}
	// DoStart lets ready ranks run.
	DoStart struct {
		To    vicinity.ID
		Start wire.Start
	}
	// DoRelease ends holds and workers at a node.
	DoRelease struct {
		To      vicinity.ID
		Release wire.Release
	}
	// DoYield lets a node know that a hold is not needed now.
	DoYield struct {
		Key    uint64 // of the hold; 0 = whichever there is
		To     vicinity.ID
		Job    jobs.ID
		Forget bool // nor is another one
	}
	// DoRecall lets a node know that the job would take what is held there for jobs after it.
	DoRecall struct {
		To  vicinity.ID
		Job jobs.ID
	}
	// DoCollect fetches the output files of a rank: Collected.
	DoCollect struct {
		From   vicinity.ID
		Output jobs.RankOutput
	}
	// DoKeep has a node hear which checkpoints of the job are needed.
	DoKeep struct {
		To   vicinity.ID
		Keep wire.Keep
	}
	// DoAccepted lets who has submitted the job know that it is durable.
	DoAccepted struct{}
	// DoAnswer answers a request: what came before it is durable.
	DoAnswer struct {
		To     vicinity.ID
		Number uint64 // of the request
		Ack    wire.Ack
	}
)

func (DoFlood) ofPrimary()    {}
func (DoAsk) ofPrimary()      {}
func (DoExtend) ofPrimary()   {}
func (DoProbe) ofPrimary()    {}
func (DoMeasure) ofPrimary()  {}
func (DoGrant) ofPrimary()    {}
func (DoStart) ofPrimary()    {}
func (DoRelease) ofPrimary()  {}
func (DoYield) ofPrimary()    {}
func (DoRecall) ofPrimary()   {}
func (DoCollect) ofPrimary()  {}
func (DoKeep) ofPrimary()     {}
func (DoAccepted) ofPrimary() {}
func (DoAnswer) ofPrimary()   {}
