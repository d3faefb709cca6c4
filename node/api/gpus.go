package api

import (
	"fmt"
	"strconv"
	"strings"

	"zorilla/internal/units"
)

// GPUText says how many GPUs a node offers, of what models, how much of their memory is in
// use and how busy they are, as far as that is known; it is not clean for a terminal.
func (n *NodeInfo) GPUText() string {
	text := strconv.Itoa(n.GPUs)
	if n.GPUs == 0 || !n.Lately.Sound() || len(n.Lately.GPUs) == 0 {
		return text
	}
	var models []string
	count := map[string]int{}
	var used, memory int64
	busy, known := 0, 0
	for _, u := range n.Lately.GPUs {
		if count[u.Model]++; u.Model != "" && count[u.Model] == 1 {
			models = append(models, u.Model)
		}
		used, memory = used+u.Used, memory+u.Memory
		if u.Busy >= 0 {
			busy, known = busy+u.Busy, known+1
		}
	}
	for i, m := range models {
		if len(models) > 1 {
			models[i] = fmt.Sprintf("%d %s", count[m], m)
		}
	}
	parts := []string{strings.TrimSpace(text + " " + strings.Join(models, ", "))}
	if memory > 0 {
		parts = append(parts, units.Bytes(used)+" of "+units.Bytes(memory)+" used")
	}
	if known > 0 {
		parts = append(parts, fmt.Sprintf("%d%% busy", busy/known))
	}
	return strings.Join(parts, ", ")
}
