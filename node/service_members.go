package node

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"zorilla/internal/codec"
	"zorilla/node/api"
	"zorilla/node/flow"
	"zorilla/vicinity"
)

// askTimeout bounds a question to another node whose answer is not needed.
const askTimeout = 2 * time.Second

// memberService is what clients ask about this node and the other members.
type memberService struct {
	self     *self
	net      *network
	stats    *memberStats
	clusters clusters
	recent   recent

	started  time.Time
	stateDir string
	room     func() *api.Room
}

// Node describes the node.
func (s *memberService) Node(context.Context) (api.NodeInfo, error) {
	info := s.self.info()
	clusters, _ := s.clusters.of(s.net.near)
	info.Cluster = clusters[info.ID]
	results := s.self.jobs.Results()
	info.Results = &results
	info.Started, info.Release, info.StateDir, info.Traffic = s.started, Release, s.stateDir, s.recent.fill(time.Now(), s.net.traffic())
	info.Room = s.room()
	return info, nil
}

// watchTraffic takes samples of the counters while the node runs.
func (s *memberService) watchTraffic(ctx context.Context) error {
	return s.recent.watch(ctx, s.net.traffic)
}

// Nodes lists the members, with what the last survey has brought.
func (s *memberService) Nodes(ctx context.Context) ([]api.NodeInfo, error) {
	self, err := s.Node(ctx)
	if err != nil {
		return nil, err
	}
	kinds := map[vicinity.ID]string{}
	for _, l := range self.Links {
		kinds[l.ID] = l.Kind
	}
	clusters, far := s.clusters.of(s.net.near)
	self.Distances = far
	list := []api.NodeInfo{}
	for _, m := range s.net.overlay.Members() {
		if m.ID == self.ID {
			continue
		}
		rtt, _ := s.net.near.Estimate(m.ID)
		list = append(list, api.NodeInfo{
			Member: m, Way: api.Way(s.net.overlay.Way(m.ID)),
			RTT: codec.Duration(rtt), Bandwidth: bandwidth(s.net.flow, m.ID),
			Neighbour: kinds[m.ID], Position: s.net.near.Position(m.ID), Cluster: clusters[m.ID],
		})
	}
	s.stats.fill(list, time.Now())
	slices.SortFunc(list, func(a, b api.NodeInfo) int {
		if (a.RTT == 0) != (b.RTT == 0) {
			return cmp.Compare(b.RTT, a.RTT) // not measured comes last
		}
		return cmp.Or(cmp.Compare(a.RTT, b.RTT), cmp.Compare(a.ID, b.ID))
	})
	return append([]api.NodeInfo{self}, list...), nil
}

// bandwidth tells clients what is known of a node.
func bandwidth(f *flow.Flow, id vicinity.ID) api.Bandwidth {
	told := func(v vicinity.Speed) api.Speed {
		if v.Rate == 0 {
			return api.Speed{}
		}
		return api.Speed{Rate: int64(math.Ceil(v.Rate)), Least: v.Least, Age: codec.Duration(time.Since(v.At))}
	}
	return api.Bandwidth{To: told(f.To(id)), From: told(f.From(id))}
}

// Measure has one node ping another, and connect to it.
func (s *memberService) Measure(ctx context.Context, from, to string, pings int) (api.Measurement, error) {
	if err := api.CheckPings(pings); err != nil {
		return api.Measurement{}, err
	}
	all, err := s.Nodes(ctx)
	if err != nil {
		return api.Measurement{}, err
	}
	a, err := findNode(all, from)
	if err != nil {
		return api.Measurement{}, err
	}
	b, err := findNode(all, to)
	if err != nil {
		return api.Measurement{}, err
	}
	if a.ID == b.ID {
		return api.Measurement{}, fmt.Errorf("%w: both ends are node %s: name two nodes", api.ErrInvalid, nameOf(a))
	}
	m := api.Measurement{}
	if a.Self {
		m = s.self.measure(ctx, b.ID, pings)
	} else {
		told, err := s.net.at(a.ID).Measure(ctx, "self", string(b.ID), pings)
		if err != nil {
			return api.Measurement{}, fmt.Errorf("ask node %s: %w", nameOf(a), err)
		}
		m = api.NewMeasurement(min(max(told.Sent, 0), pings), told.Answered)
		m.Stream = told.Stream.Bounded()
		if told.Estimate > 0 && told.Estimate <= api.MaxRTT {
			m.Estimate = told.Estimate
		}
	}
	if ctx.Err() != nil {
		return api.Measurement{}, ctx.Err()
	}
	if d, ok := s.net.near.Distance(a.ID, b.ID); ok && m.Estimate == 0 {
		m.Estimate = codec.Duration(d)
	}
	m.From = api.Endpoint{ID: a.ID, Name: a.Name, Site: a.Site}
	m.To = api.Endpoint{ID: b.ID, Name: b.Name, Site: b.Site}
	return m, nil
}

// maxCandidates is how many nodes an error names.
const maxCandidates = 8

// findNode returns the node that a user means; all begins with this one.
func findNode(all []api.NodeInfo, ref string) (api.NodeInfo, error) {
	if ref == "self" {
		return all[0], nil
	}
	if err := api.CheckNode(ref); err != nil {
		return api.NodeInfo{}, err
	}
	var named, begin []api.NodeInfo
	for _, n := range all {
		if n.Name == ref {
			named = append(named, n)
		}
		if strings.HasPrefix(string(n.ID), ref) {
			begin = append(begin, n)
		}
	}
	switch {
	case len(named) == 1:
		return named[0], nil
	case len(named) == 0 && len(begin) == 1:
		return begin[0], nil
	case len(named)+len(begin) == 0:
		return api.NodeInfo{}, fmt.Errorf("node %q %w: the members are %s", ref, api.ErrNotFound, candidates(all))
	}
	return api.NodeInfo{}, fmt.Errorf("node %q is %w: it could be %s: name more of its ID", ref, api.ErrAmbiguous, candidates(append(named, begin...)))
}

// candidates names nodes for an error, each once.
func candidates(nodes []api.NodeInfo) string {
	var names []string
	for _, n := range nodes {
		if name := nameOf(n); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if more := len(names) - maxCandidates; more > 0 {
		names = append(names[:maxCandidates], fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

func nameOf(n api.NodeInfo) string {
	if n.Name == "" {
		return n.ID.Short()
	}
	return fmt.Sprintf("%s (%.8s)", n.Name, n.ID)
}
