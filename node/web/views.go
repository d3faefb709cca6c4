package web

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"zorilla/jobs"
	"zorilla/node/api"
	"zorilla/transfer"
)

// Service is what the page looks at: parts of api.Service, and Select, which finds jobs
// among any number.
type Service interface {
	Node(ctx context.Context) (api.NodeInfo, error)
	Nodes(ctx context.Context) ([]api.NodeInfo, error)
	Survey(ctx context.Context) ([]api.NodeInfo, error)
	Select(ctx context.Context, q jobs.Selection) (jobs.Selected, error)
	Job(ctx context.Context, job string) (jobs.Status, error)
	Queue(ctx context.Context) ([]jobs.Waiting, error)
	Await(ctx context.Context, job string, since uint64) (jobs.Status, uint64, error)
	Explain(ctx context.Context, job string) (jobs.Explanation, error)
	Tasks(ctx context.Context, job string, q jobs.TaskQuery) (jobs.TaskPage, error)
	Output(ctx context.Context, job string, q api.OutputQuery, f func(jobs.Output) error) error
	Chunk(ctx context.Context, job string, h transfer.Hash) ([]byte, error)
	Changes() <-chan struct{}
}

// views makes what the pages show of what the service tells. What has to be kept
// from one look to the next is kept here.
type views struct {
	service Service
	build   string
	atlas   atlas
	meter   meter
	trees   trees
	hour    shared // a timelineView
}

// shared is a view as somebody saw it last, of a page whose looks ask for many jobs, which may
// have many workers, or be another node's: who looks at about the same time shares one.
type shared struct {
	mu    sync.Mutex // guards what follows
	view  any
	from  time.Time       // when the look began
	at    time.Time       // when it ended
	news  <-chan struct{} // closed when something has changed since
	looks time.Time       // since when somebody does; zero = nobody
}

// sharedFor is how old a view may be that is shown while somebody looks, and how long others
// wait for that look.
const sharedFor = time.Minute

// recent returns the last view if another look would come too soon, nil if there is none yet; due is when one may be
// taken if something has changed since, and the look did not begin after who asks came, else 0. The
// caller looks if ok is false, and then tells done.
func (h *shared) recent(every time.Duration, news <-chan struct{}, came time.Time) (v any, due time.Duration, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	age := time.Since(h.at)
	switch {
	case age >= every && time.Since(h.looks) >= sharedFor:
		h.looks = time.Now()
		return nil, 0, false
	case age >= sharedFor:
		return nil, every / 10, true
	}
	if h.news != news && !h.from.After(came) { // else who waits could wait for ever
		due = max(every-age, every/10)
	}
	return h.view, due, true
}

func (h *shared) done(v any, from time.Time, news <-chan struct{}, whole bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.looks = time.Time{}
	if whole {
		h.view, h.from, h.at, h.news = v, from, time.Now(), news
	}
}

// members asks for this node and all that it knows.
func (s *views) members(ctx context.Context) (self api.NodeInfo, nodes []api.NodeInfo, err error) {
	if self, err = s.service.Node(ctx); err != nil {
		return self, nil, fmt.Errorf("ask for the node: %w", err)
	}
	if nodes, err = s.service.Nodes(ctx); err != nil {
		return self, nil, fmt.Errorf("ask for the members: %w", err)
	}
	return self, nodes, nil
}

// nearestFirst puts the node itself in front, then what was measured, by round trip.
func nearestFirst(self api.NodeInfo, nodes []api.NodeInfo) []api.NodeInfo {
	self.Self = true
	for _, n := range nodes {
		if n.ID == self.ID && len(self.Position) == 0 {
			self.Position = n.Position
		}
	}
	sorted := []api.NodeInfo{self}
	for _, n := range nodes {
		if n.ID != self.ID {
			sorted = append(sorted, n)
		}
	}
	slices.SortStableFunc(sorted[1:], func(a, b api.NodeInfo) int {
		return cmp.Or(cmp.Compare(b2i(a.RTT <= 0), b2i(b.RTT <= 0)), cmp.Compare(a.RTT, b.RTT), cmp.Compare(a.ID, b.ID))
	})
	return sorted
}
