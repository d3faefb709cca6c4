package primary

import (
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/search"
)

// sharing is whether the job leaves it to a search that it shares with other jobs to find workers.
type sharing struct {
	shares bool
	shared *search.Search // nil = it has not begun
}

// searching is the search that looks for workers.
func (p *lifecycle) searching() *search.Search {
	if p.shares && p.shared != nil {
		return p.shared
	}
	return p.Search
}

// look asks the search what it waits for. Of a shared search the job need not be woken.
func (p *lifecycle) look() search.Outlook {
	o := p.searching().Outlook(p.Demand())
	if p.shares {
		o.Until = time.Time{}
	}
	return o
}

// ShareSearch has the job leave it to a search that it shares with other jobs to find workers; nil = that
// has not begun. It ends with Found or SearchAlone.
func (p *sharing) ShareSearch(s *search.Search) { *p = sharing{true, s} }

// Found takes what a shared search has found for the job, held by nodes for a batch.
func (p *Primary) Found(now time.Time, s *search.Search, batch jobs.ID, got []search.Choice) {
	p.sharing = sharing{}
	p.Search.Learn(s, got)
	p.noteSearch()
	p.grant(now, batch, got, nil)
	p.pursue(now)
}

// SearchAlone has the job look for its workers itself.
func (p *Primary) SearchAlone(now time.Time) {
	p.sharing = sharing{}
	p.pursue(now)
}

// ResumeSearch has a job that waits at a node which was alone ask others at a time.
func (p *Primary) ResumeSearch(now, at time.Time) {
	p.Search.ResumeAt(at)
	p.expect(now, p.look())
}
