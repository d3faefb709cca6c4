package node

import (
	"testing"

	"zorilla/jobs"
	"zorilla/node/api"
)

// What a job's origin runs at its end is told to its owner's clients, and to no other node.
func TestOtherNodesAreNotToldOfCommands(t *testing.T) {
	const secret = "a phrase for two nodes"
	a := start(t, Config{Secret: secret}).ready(t)
	b := start(t, Config{Secret: secret, Join: []string{a.Self().Addrs[0]}}).ready(t)
	for {
		changed := b.Vicinity().Changed()
		if _, ok := b.net.overlay.Member(a.Self().ID); ok {
			break
		}
		select {
		case <-changed:
		case <-t.Context().Done():
			t.Fatal("they do not find each other")
		}
	}
	id, err := a.Service().Submit(t.Context(), jobs.Spec{Args: []string{"true"}, Min: 1, Max: 1, Slots: 100, Notices: jobs.Notices{OnEnd: "true"}})
	if err != nil {
		t.Fatal(err)
	}
	for who, x := range map[string]struct {
		from api.Peer
		want string
	}{
		"its owner":    {a.Service(), "true"},
		"another node": {api.NewClient(b.net.client.Transport, peerURL(a.Self().ID)+apiPrefix), ""},
	} {
		st, err := x.from.Job(t.Context(), string(id))
		if err != nil || st.Spec.OnEnd != x.want {
			t.Errorf("asked for the job by %s it tells %q, %v, want %q", who, st.Spec.OnEnd, err, x.want)
		}
		if st, _, err = x.from.Await(t.Context(), string(id), 0); err != nil || st.Spec.OnEnd != x.want {
			t.Errorf("as %s waits it tells %q, %v, want %q", who, st.Spec.OnEnd, err, x.want)
		}
		list, err := x.from.Jobs(t.Context(), true)
		if err != nil || len(list) != 1 || list[0].Spec.OnEnd != x.want {
			t.Errorf("in the list for %s: %+v, %v", who, list, err)
		}
	}
}
