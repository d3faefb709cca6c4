package node

import (
	"context"
	"fmt"
	"testing"

	"zorilla/jobs"
	"zorilla/node/api"
)

// earlierPeer is a member whose program knows no summaries.
type earlierPeer struct{ api.Peer }

func (earlierPeer) Summaries(context.Context, bool) ([]jobs.Summary, error) {
	return nil, fmt.Errorf("%w: nothing that nodes ask each other", api.ErrRefused)
}

func (earlierPeer) Jobs(context.Context, bool) ([]jobs.Status, error) {
	return []jobs.Status{{ID: "k7f3q@zeb2a", Spec: jobs.Spec{Name: "pi", Min: 2, Max: 2}, Workers: []jobs.WorkerStatus{{State: jobs.WorkerRunning}}}}, nil
}

// silentPeer is a member that does not answer.
type silentPeer struct{ api.Peer }

func (silentPeer) Summaries(context.Context, bool) ([]jobs.Summary, error) {
	return nil, api.ErrUnavailable
}

// Members of earlier versions are in lists of all jobs too; who does not answer is
// not asked twice.
func TestSummariesOfAnEarlierVersion(t *testing.T) {
	list, err := askSummaries(t.Context(), earlierPeer{})
	if err != nil || len(list) != 1 || list[0].Name != "pi" || list[0].Wanted != 2 || list[0].Count.Active != 1 {
		t.Errorf("got %+v, %v", list, err)
	}
	if list, err := askSummaries(t.Context(), silentPeer{}); err == nil {
		t.Errorf("of one that does not answer: %+v", list)
	}
}
