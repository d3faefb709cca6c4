package primary

import (
	"cmp"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/search"
)

// asking is under what name nodes are asked for workers.
func (p *lifecycle) asking() jobs.ID { return cmp.Or(p.Search.Call, p.Rec.ID) }

// yield gives offers back.
func (p *lifecycle) yield(offers []search.Returned, forget bool) {
	for _, o := range offers {
		p.Do(DoYield{To: o.Node, Job: p.asking(), Key: o.Key, Forget: forget})
	}
}

// Searches reports whether a job looks for workers, and may find them soon.
func (p *Primary) Searches(now time.Time) bool {
	return !p.Rec.State.Final() && p.Rec.Wanted() > 0 && !p.Search.Short(now)
}

// HandOn has a job that waits for its turn go on with the search of one that has its workers.
func (p *Primary) HandOn(to *Primary) {
	p.Search, to.Search = p.Search.Pass(to.Search), p.Search
	p.Behind = 0
}

// Rouse has a job that waits at a node which was alone ask others at a time.
func (p *Primary) Rouse(now, at time.Time) {
	p.Search.Rouse(at)
	p.expect(now, p.Search.Outlook(p.demand()))
}

// TakeTurn has a job look for workers under the name of a call; "" = its own.
func (p *Primary) TakeTurn(now time.Time, call jobs.ID) {
	p.Search.Begins(call)
	p.pursue(now)
}
