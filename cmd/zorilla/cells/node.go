package cells

import (
	"fmt"
	"strconv"

	"zorilla/node/api"
)

// Busy tells how many of a node's slots are in use or held.
func Busy(n *api.NodeInfo) string {
	if !n.Loaded() {
		return "?/" + strconv.Itoa(n.Slots)
	}
	return fmt.Sprintf("%d/%d", n.Busy, n.Slots)
}
