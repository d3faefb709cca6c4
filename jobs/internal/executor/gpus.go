package executor

import (
	"slices"

	"zorilla/jobs/internal/participant"
	"zorilla/jobs/mounts"
	"zorilla/jobs/process"
)

// shownGPUs lists those whose device files a worker is shown: those of its job at this node,
// or all where files are not closed, or the owner lets it write to paths that have such files.
func (c *Config) shownGPUs(e *participant.DoRun, paths []string) []int {
	owners := slices.ContainsFunc(paths, func(p string) bool { return mounts.Within(p, "/dev") || mounts.Within("/dev", p) })
	if len(e.GPUs) > 0 && c.closes() && !owners {
		return e.GPUs
	}
	var all []int
	for i := range c.Self.GPUs {
		all = append(all, i)
	}
	return all
}

// closes reports whether workers open no files but those that they are shown.
func (c *Config) closes() bool {
	return c.spaces() || slices.Contains(c.Runner.Enforces(), process.Landlock)
}

// spaces reports whether workers have namespaces.
func (c *Config) spaces() bool { return slices.Contains(c.Runner.Enforces(), process.Namespaces) }
