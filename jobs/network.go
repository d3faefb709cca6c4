package jobs

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// What workers can reach: values of Spec.Net, and of Limits.Network for the most that
// an owner allows.
const (
	NetNone = "none" // each other on the same node, by the loopback interface
	NetJob  = "job"  // each other, and the addresses of the nodes of their job
	NetHost = "host" // what the node can; also ""
)

// nets are the networks, each with all that those before it have.
var nets = []string{NetNone, NetJob, NetHost}

// most is the place of a network among nets.
func most(net string) int { return slices.Index(nets, cmp.Or(net, NetHost)) }

// checkNet returns what is wrong with a network, as a user sees it.
func checkNet(net string) error {
	if most(net) >= 0 {
		return nil
	}
	return errors.New("want none, job or host")
}

// AllowsNet reports whether workers may have the network that a job asks for.
func (l *Limits) AllowsNet(net string) bool { return most(net) <= most(l.Network) }

// HasNet reports whether a network is one that a job can ask for; "" = NetHost.
func HasNet(net string) bool { return most(net) >= 0 }

// checkNetwork says what is wrong with the network of limits that come from a file.
func (l *Limits) checkNetwork() error {
	if err := checkNet(l.Network); err != nil {
		return fmt.Errorf("network %.40q: %w", l.Network, err)
	}
	return nil
}
