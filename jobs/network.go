package jobs

import (
	"errors"
	"fmt"
)

// What workers can reach: values of Spec.Net, and of Limits.Network for the most that
// an owner allows.
const (
	NetNone = "none" // each other on the same node, by the loopback interface
	NetHost = "host" // what the node can; also ""
)

// checkNet returns what is wrong with a network, as a user sees it.
func checkNet(net string) error {
	switch net {
	case "", NetNone, NetHost:
		return nil
	}
	return errors.New("want none or host")
}

// AllowsNet reports whether workers may have the network that a job asks for.
func (l *Limits) AllowsNet(net string) bool { return l.Network != NetNone || net == NetNone }

// checkNetwork says what is wrong with the network of limits that come from a file.
func (l *Limits) checkNetwork() error {
	if err := checkNet(l.Network); err != nil {
		return fmt.Errorf("network %.40q: %w", l.Network, err)
	}
	return nil
}
