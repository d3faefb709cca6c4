package node

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"zorilla/internal/codec"
	"zorilla/node/api"
	"zorilla/vicinity"
)

// Node describes the node.
func (s *service) Node(context.Context) (api.NodeInfo, error) {
	n := s.n
	info := api.NodeInfo{
		Member: n.overlay.Self(), Self: true, Position: n.vicinity.Position(n.creds.ID()),
		Started: n.started, Release: Release, Busy: n.jobs.Busy(), StateDir: n.cfg.State, Traffic: map[string]int64{},
	}
	n.traffic(info.Traffic)
	return info, nil
}

// Nodes lists the members.
func (s *service) Nodes(ctx context.Context) ([]api.NodeInfo, error) {
	self, err := s.Node(ctx)
	if err != nil {
		return nil, err
	}
	links := map[vicinity.ID]string{}
	for _, nb := range s.n.vicinity.Neighbours() {
		links[nb.ID] = "near"
		if nb.Far {
			links[nb.ID] = "far"
		}
	}
	list := []api.NodeInfo{}
	for _, m := range s.n.overlay.Members() {
		if m.ID == self.ID {
			continue
		}
		rtt, _ := s.n.vicinity.Estimate(m.ID)
		list = append(list, api.NodeInfo{Member: m, RTT: codec.Duration(rtt), Neighbour: links[m.ID], Position: s.n.vicinity.Position(m.ID)})
	}
	slices.SortFunc(list, func(a, b api.NodeInfo) int {
		if (a.RTT == 0) != (b.RTT == 0) {
			return cmp.Compare(b.RTT, a.RTT) // not measured comes last
		}
		return cmp.Or(cmp.Compare(a.RTT, b.RTT), cmp.Compare(a.ID, b.ID))
	})
	return append([]api.NodeInfo{self}, list...), nil
}

// traffic fills in the counters of all parts.
func (n *Node) traffic(m map[string]int64) {
	maps.Copy(m, n.overlay.Stats())
	m["packets of unknown kinds"] = n.unknown.Load()
	f := n.flooder.Stats()
	m["floods started"] = int64(f.Originated)
	m["flood copies received"] = int64(f.Received)
	m["flood copies forwarded"] = int64(f.Forwarded)
	m["flood duplicates"] = int64(f.Duplicates)
	m["floods delivered"] = int64(f.Delivered)
	m["floods malformed"] = int64(f.Malformed)
	m["floods refused"] = int64(f.Refused + f.Limited)
	v := n.vicinity.Stats()
	m["vicinity messages sent"] = v.Sent
	m["vicinity bytes sent"] = v.SentBytes
	m["vicinity malformed"] = v.Malformed
	c := n.jobs.Counts()
	m["job messages malformed"] = c.Malformed
	m["job messages refused"] = c.Refused
}
