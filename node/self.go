package node

import (
	"context"
	"errors"
	"os"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs/agent"
	"zorilla/jobs/gpu"
	"zorilla/node/api"
	"zorilla/node/gossip"
	"zorilla/node/usage"
	"zorilla/vicinity"
)

// self reports how this node is, and measures from here.
type self struct {
	net   *network
	jobs  *agent.Service
	state func() (state, why string)
	use   usage.Meter
	gpus  *gpu.Meter
}

// info is what the node tells others of itself. It costs little, since many
// may ask.
func (s *self) info() api.NodeInfo {
	info := api.NodeInfo{
		Member: s.net.overlay.Self(), Self: true, Position: s.net.near.Position(s.net.self),
		Told: time.Now(), Busy: s.jobs.Busy(), Links: links(s.net.near.Neighbours()),
	}
	info.State, info.Why = s.state()
	if info.Lately = s.use.Lately(); info.Lately != nil {
		info.Lately.GPUs = s.gpus.Uses()
	}
	return info
}

// watch notes how the node is used until ctx ends.
func (s *self) watch(ctx context.Context) error {
	root := os.DirFS("/")
	return s.use.Watch(ctx, func() usage.Look {
		state, _ := s.state()
		l := usage.Look{Slots: s.net.overlay.Self().Slots, Busy: s.jobs.Busy(), Shut: state != ""}
		l.Load, l.Free = usage.Machine(root)
		return l
	})
}

// Kinds of links.
const (
	linkNear = "near"
	linkFar  = "far"
)

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

// inVain is how many pings without any answer are enough: who answers none is
// not there.
const inVain = 5

// measure pings a member from here, and connects to it.
func (s *self) measure(ctx context.Context, to vicinity.ID, pings int) api.Measurement {
	stream := make(chan *api.Stream, 1)
	go func() { stream <- s.connect(ctx, to) }()
	m := s.ping(ctx, to, pings)
	m.Stream = <-stream
	return m
}

// connect makes a new connection to a member, whose handshake has packets of all sizes.
func (s *self) connect(ctx context.Context, to vicinity.ID) *api.Stream {
	m, _ := s.net.overlay.Member(to)
	c, err := s.net.overlay.DialPeer(ctx, to, m.Addrs, gossip.HTTP2)
	if err != nil {
		return (&api.Stream{Error: err.Error()}).Bounded()
	}
	defer c.Close()
	return &api.Stream{Small: gossip.HasSmallPackets(c)}
}

func (s *self) ping(ctx context.Context, to vicinity.ID, pings int) api.Measurement {
	var answered []codec.Duration
	sent := 0
	for sent < pings && ctx.Err() == nil && (len(answered) > 0 || sent < inVain) {
		rtt, err := s.net.near.Ping(ctx, to)
		if errors.Is(err, vicinity.ErrUnknown) || errors.Is(err, vicinity.ErrBusy) {
			break
		}
		sent++
		if err == nil {
			answered = append(answered, codec.Duration(rtt))
		}
	}
	m := api.NewMeasurement(sent, answered)
	if d, ok := s.net.near.Distance(s.net.self, to); ok {
		m.Estimate = codec.Duration(d)
	}
	return m
}
