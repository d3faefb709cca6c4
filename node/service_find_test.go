package node

import (
	"context"
	"testing"

	"zorilla/jobs"
	"zorilla/node/api"
)

// teller is another node that says of a job that it has a command for whoever asks.
type teller struct{ api.Peer }

func (teller) Job(context.Context, string) (jobs.Status, error) {
	return jobs.Status{Spec: jobs.Spec{Args: []string{"true"}, Notices: jobs.Notices{OnEnd: "rm -r ~", SignalOnChange: "HUP"}}, AtOrigin: jobs.AtOrigin{StdinBytes: 3, OnEnd: &jobs.OnEnd{Text: "secret"}}}, nil
}

func (t teller) Await(ctx context.Context, job string, since uint64) (jobs.Status, uint64, error) {
	st, err := t.Job(ctx, job)
	return st, since + 1, err
}

func (t teller) Jobs(ctx context.Context, _ bool) ([]jobs.Status, error) {
	st, err := t.Job(ctx, "")
	return []jobs.Status{st}, err
}

// Who submits a job of another node again must not have a command run by that which the
// other node has chosen.
func TestCommandsOfOtherNodesAreNotBelieved(t *testing.T) {
	r := remote{teller{}}
	st, err := r.Job(t.Context(), "k7f3q")
	again, version, awaitErr := r.Await(t.Context(), "k7f3q", 4)
	list, listErr := askStatuses(t.Context(), teller{})
	for _, st := range append(list, st, again) {
		if st.Spec.OnEnd != "" || st.OnEnd != nil || st.Spec.SignalOnChange != "HUP" || st.StdinBytes != 3 {
			t.Errorf("got %+v, %+v", st.Spec.Notices, st.AtOrigin)
		}
	}
	if err != nil || awaitErr != nil || listErr != nil || len(list) != 1 || version != 5 {
		t.Errorf("%v, %v, %v, %d in the list, version %d", err, awaitErr, listErr, len(list), version)
	}
}
