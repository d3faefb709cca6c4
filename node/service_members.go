package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"zorilla/internal/codec"
	"zorilla/node/api"
	"zorilla/vicinity"
)

// Node describes the node.
func (s *service) Node(context.Context) (api.NodeInfo, error) {
	n, info := s.n, s.self()
	info.Cluster = s.clusters.of(n.vicinity)[info.ID]
	results := n.jobs.Results()
	info.Results = &results
	info.Started, info.Release, info.StateDir, info.Traffic = n.started, Release, n.cfg.State, s.recent.fill(time.Now(), n.traffic())
	return info, nil
}

// self is what the node tells others of itself. It costs little, since many
// may ask.
func (s *service) self() api.NodeInfo {
	n := s.n
	info := api.NodeInfo{
		Member: n.overlay.Self(), Self: true, Position: n.vicinity.Position(n.creds.ID()),
		Told: time.Now(), Busy: n.jobs.Busy(), Links: links(n.vicinity.Neighbours()),
	}
	info.State, info.Why = s.state()
	return info
}

func links(neighbours []vicinity.Neighbour) []api.Link {
	list := make([]api.Link, len(neighbours))
	for i, nb := range neighbours {
		list[i] = api.Link{ID: nb.ID, Kind: linkNear}
		if nb.Far {
			list[i].Kind = linkFar
		}
	}
	return list
}

// Kinds of links.
const (
	linkNear = "near"
	linkFar  = "far"
)

// Nodes lists the members, with what the last survey has brought.
func (s *service) Nodes(ctx context.Context) ([]api.NodeInfo, error) {
	self, err := s.Node(ctx)
	if err != nil {
		return nil, err
	}
	kinds := map[vicinity.ID]string{}
	for _, l := range self.Links {
		kinds[l.ID] = l.Kind
	}
	clusters := s.clusters.of(s.n.vicinity)
	list := []api.NodeInfo{}
	for _, m := range s.n.overlay.Members() {
		if m.ID == self.ID {
			continue
		}
		rtt, _ := s.n.vicinity.Estimate(m.ID)
		list = append(list, api.NodeInfo{
			Member: m, RTT: codec.Duration(rtt), Neighbour: kinds[m.ID], Position: s.n.vicinity.Position(m.ID), Cluster: clusters[m.ID],
		})
	}
	s.survey.fill(list, time.Now())
	slices.SortFunc(list, func(a, b api.NodeInfo) int {
		if (a.RTT == 0) != (b.RTT == 0) {
			return cmp.Compare(b.RTT, a.RTT) // not measured comes last
		}
		return cmp.Or(cmp.Compare(a.RTT, b.RTT), cmp.Compare(a.ID, b.ID))
	})
	return append([]api.NodeInfo{self}, list...), nil
}

// inVain is how many pings without any answer are enough: who answers none is
// not there.
const inVain = 5

// Measure has one node ping another.
func (s *service) Measure(ctx context.Context, from, to string, pings int) (api.Measurement, error) {
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
		m = s.ping(ctx, b.ID, pings)
	} else {
		told, err := s.at(a.ID).Measure(ctx, "self", string(b.ID), pings)
		if err != nil {
			return api.Measurement{}, fmt.Errorf("ask node %s: %w", nameOf(a), err)
		}
		m = api.NewMeasurement(min(max(told.Sent, 0), pings), told.Answered)
		if told.Estimate > 0 && told.Estimate <= api.MaxRTT {
			m.Estimate = told.Estimate
		}
	}
	if ctx.Err() != nil {
		return api.Measurement{}, ctx.Err()
	}
	if d, ok := s.n.vicinity.Distance(a.ID, b.ID); ok && m.Estimate == 0 {
		m.Estimate = codec.Duration(d)
	}
	m.From = api.Endpoint{ID: a.ID, Name: a.Name, Site: a.Site}
	m.To = api.Endpoint{ID: b.ID, Name: b.Name, Site: b.Site}
	return m, nil
}

// ping measures from here.
func (s *service) ping(ctx context.Context, to vicinity.ID, pings int) api.Measurement {
	var answered []codec.Duration
	sent := 0
	for sent < pings && ctx.Err() == nil && (len(answered) > 0 || sent < inVain) {
		rtt, err := s.n.vicinity.Ping(ctx, to)
		if errors.Is(err, vicinity.ErrUnknown) || errors.Is(err, vicinity.ErrBusy) {
			break
		}
		sent++
		if err == nil {
			answered = append(answered, codec.Duration(rtt))
		}
	}
	m := api.NewMeasurement(sent, answered)
	if d, ok := s.n.vicinity.Distance(s.n.creds.ID(), to); ok {
		m.Estimate = codec.Duration(d)
	}
	return m
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
