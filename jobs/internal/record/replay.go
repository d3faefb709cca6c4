package record

import (
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/journal"
)

// Replay applies an entry of the journal. After one that is damaged nothing is
// believed.
func (r *Record) Replay(e journal.Entry) {
	var ev Event
	switch {
	case r.Broken != "":
	case e.Damage != "":
		r.Broken = e.Damage
	case codec.Unmarshal(e.Data, &ev) != nil:
		r.Broken = "an entry cannot be read"
	case !ev.Sound(r):
		r.Broken = "an entry does not fit what came before"
	case ev.Kind == Forgotten:
		r.Past = ev.Past
	default:
		r.Apply(ev)
	}
}

// GiveUp ends a job of which it is not known what happened to it. That is not
// written down: the journal tells the same again.
func (r *Record) GiveUp(now time.Time) {
	if r.Ranks == nil { // not even its submission is known
		r.Spec = jobs.Spec{Args: []string{"(not known)"}, Min: 1, Max: 1, Slots: 1}
		r.Ranks = make([]Rank, 1)
	}
	if !r.State.Final() {
		r.State, r.Code, r.Ended = jobs.Failed, jobs.CodeZorilla, now
		r.Reason = "its journal is damaged: " + r.Broken + ": what happened to it then is not known"
	}
}
