package sim

import (
	"fmt"
	"time"

	"zorilla/jobs"
)

// Settled returns the graph that the cores of a network know after a time.
func Settled(cfg OverlayConfig, after time.Duration) Graph {
	o := NewOverlay(cfg)
	o.Run(after)
	return Known(o)
}

// Start submits a job and lets time pass until all its workers run. The error tells
// what it waits for, if that does not come within a limit.
func (g *Grid) Start(origin int, spec jobs.Spec, limit time.Duration) (jobs.ID, error) {
	id, err := g.Submit(origin, spec)
	if err != nil {
		return id, err
	}
	core := g.Jobs(origin)
	if !g.Run(limit, func() bool { return core.State(id) == jobs.Running || core.State(id).Final() }) || core.State(id) != jobs.Running {
		st, _ := core.Status(id)
		return id, fmt.Errorf("%s: %s", st.State, st.Reason)
	}
	return id, nil
}

// Pass lets time pass.
func (g *Grid) Pass(d time.Duration) { g.Run(d, func() bool { return false }) }
