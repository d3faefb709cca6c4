package node

import (
	"context"
	"fmt"

	"zorilla/jobs/agent"
	"zorilla/jobs/gpu"
	"zorilla/node/api"
	"zorilla/node/trust"
)

// Release is the version of the program.
const Release = "0.1.0"

// service is the API of a node for clients: what its parts do together.
type service struct {
	*jobService
	*memberService
	*ownerService
	*blobService
	origin origin // the API for other nodes

	jobs    *agent.Service
	net     *network
	secret  trust.Secret
	webURL  string // "" = the node has no page
	lookURL string // of the page, only to look
}

var _ api.Service = (*service)(nil)

func newService(n *Node) *service {
	s := &service{jobs: n.jobs, net: n.net, secret: n.invite}
	s.blobService = &blobService{store: n.store, uploads: uploads{store: n.store}}
	s.ownerService = &ownerService{owner: n.owner, jobs: n.jobs, up: n.net.flow.Uplink()}
	self := &self{net: n.net, jobs: n.jobs, state: s.state, gpus: gpu.NewMeter(n.gpus, n.Self().GPUs)}
	s.origin = origin{self: self, jobs: n.jobs, blobs: s.blobService, measuring: newOneAtATime()}
	s.memberService = &memberService{self: self, net: n.net, stats: newMemberStats(), started: n.started, stateDir: n.cfg.State, room: n.room}
	s.jobService = &jobService{jobs: n.jobs, net: n.net, local: s.origin, blobs: s.blobService, nodes: s.memberService}
	return s
}

// room looks at the disk of workers' files.
func (n *Node) room() *api.Room {
	free, err := n.work.free()
	if err != nil {
		return nil
	}
	return &api.Room{Dir: string(n.work), Free: free, Keep: n.work.keepFree(n.cfg.Owner.KeepFree), NoExec: n.work.noexec()}
}

// Invite returns the token that lets another machine join.
func (s *service) Invite(context.Context) (string, error) {
	return trust.Invite{Secret: s.secret, Addrs: s.net.overlay.Self().Addrs}.Token(), nil
}

// Web returns the page's address.
func (s *service) Web(_ context.Context, readOnly bool) (string, error) {
	if s.webURL == "" {
		return "", fmt.Errorf("%w: this node has no page: start it without --web none", api.ErrUnavailable)
	}
	if readOnly {
		return s.lookURL, nil
	}
	return s.webURL, nil
}

// Changes reports changes.
func (s *service) Changes() <-chan struct{} { return s.jobs.Changes() }
