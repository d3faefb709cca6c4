package columns

import (
	"fmt"
	"strconv"

	"zorilla/internal/units"
	"zorilla/node/api"
	"zorilla/vicinity"
)

// Busy reports how many of a node's slots are in use or held.
func Busy(n *api.NodeInfo) string {
	if !n.Loaded() {
		return "?/" + strconv.Itoa(n.Slots)
	}
	return fmt.Sprintf("%d/%d", n.Busy, n.Slots)
}

// State reports whether a node takes new workers.
func State(n *api.NodeInfo) string {
	switch {
	case !n.Loaded():
		return "unknown"
	case n.State == "":
		return "ready"
	}
	return n.State
}

// StateAndCause is State, with why a node is broken, until when it is outside of hours, and what hinders packets to it.
func StateAndCause(n *api.NodeInfo) string {
	text := State(n) + n.Because(n.Why)

	if n.Way.NoUDP {
		text += ", no UDP"
	}
	if n.Way.Small {
		text += ", small packets only"
	}
	return text
}

// Speeds are clock, power of a core, and bandwidth of the network of a node.
func Speeds(s vicinity.Speeds) []string {
	cells := []string{None, None, None}
	if s.Clock > 0 {
		cells[0] = units.Clock(s.Clock)
	}
	if s.Power > 0 {
		cells[1] = strconv.FormatInt(s.Power, 10)
	}
	if s.Bandwidth > 0 {
		cells[2] = units.Bandwidth(s.Bandwidth)
	}
	return cells
}
