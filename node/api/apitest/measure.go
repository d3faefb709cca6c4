package apitest

import (
	"context"
	"fmt"
	"strings"
	"time"

	"zorilla/internal/codec"
	"zorilla/node/api"
)

// Measure implements api.Service: the way from a member to another takes as
// long as that from the node to the latter, and the last of several pings is
// lost.
func (f *Fake) Measure(_ context.Context, from, to string, pings int) (api.Measurement, error) {
	if err := api.CheckPings(pings); err != nil {
		return api.Measurement{}, err
	}
	a, err := f.member(from)
	if err != nil {
		return api.Measurement{}, err
	}
	b, err := f.member(to)
	if err != nil {
		return api.Measurement{}, err
	}
	if a.ID == b.ID {
		return api.Measurement{}, fmt.Errorf("%w: both ends are node %s: name two nodes", api.ErrInvalid, a.ID.Short())
	}
	var answered []codec.Duration
	for i := range max(1, pings-1) {
		answered = append(answered, b.RTT+codec.Duration(i)*codec.Duration(time.Microsecond))
	}
	m := api.NewMeasurement(pings, answered)
	m.From = api.Endpoint{ID: a.ID, Name: a.Name, Site: a.Site}
	m.To = api.Endpoint{ID: b.ID, Name: b.Name, Site: b.Site}
	m.Estimate = b.RTT
	m.Stream = &api.Stream{Small: b.Way.Small}
	return m, nil
}

func (f *Fake) member(name string) (api.NodeInfo, error) {
	var found []api.NodeInfo
	for _, m := range f.Members {
		if name == "self" && m.Self || name != "" && (m.Name == name || strings.HasPrefix(string(m.ID), name)) {
			found = append(found, m)
		}
	}
	switch len(found) {
	case 0:
		return api.NodeInfo{}, fmt.Errorf("node %q %w: 'zorilla nodes' lists the members", name, api.ErrNotFound)
	case 1:
		return found[0], nil
	}
	return api.NodeInfo{}, fmt.Errorf("node %q is %w: %d begin so", name, api.ErrAmbiguous, len(found))
}
