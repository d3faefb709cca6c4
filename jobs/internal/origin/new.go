package origin

import (
	"zorilla/jobs"
	"zorilla/jobs/internal/core"
	"zorilla/jobs/internal/loop"
	"zorilla/jobs/internal/onend"
	"zorilla/jobs/internal/wire"
)

// New are no jobs yet: Load reads the journal.
func New(cfg Config, l *loop.Loop, c *core.Core) *Jobs {
	d := &disk{dir: cfg.Dir, journal: cfg.Journal, store: cfg.Store, log: cfg.Log, stopped: l.Stopped, room: cfg.Room, erases: make(chan struct{}, 1)}
	o := &Jobs{
		cfg: cfg, self: cfg.Self, log: cfg.Log, loop: l, core: c,
		disk: d, answers: answers{waiting: map[uint64]chan<- wire.Ack{}},
		table: &table{
			self: cfg.Self.ID, store: cfg.Store, log: cfg.Log, loop: l, core: c, disk: d,
			jobs: map[jobs.ID]*job{}, keys: keys{}, archive: newArchive(cfg.Self.ID, cfg.KeepFor, cfg.KeepOutputs),
		},
	}
	o.feeds = &feeds{log: cfg.Log, loop: l, disk: d}
	o.collector = &collector{store: cfg.Store, fetch: cfg.Fetch, log: cfg.Log, loop: l, core: c, places: make(chan struct{}, maxFetches)}
	o.intake = &intake{log: cfg.Log, loop: l, core: c, peers: cfg.Peers, places: make(chan struct{}, maxStreams)}
	o.inputs = &inputs{self: cfg.Self.ID, store: cfg.Store, fetch: cfg.Fetch, log: cfg.Log, loop: l, core: c, table: o.table, mending: map[jobs.ID]bool{}}
	o.hooks = &hooks{loop: l, journal: cfg.Journal, table: o.table}
	if api := o.API(); cfg.Hooks != nil {
		o.hooks.keeper = &onend.Keeper{Run: cfg.Hooks, Loop: l, Log: cfg.Log, Status: api.Status, Output: o.hooks.output, Ended: o.hooks.ended}
	}
	cfg.Store.OnLost(o.inputs.changed)
	return o
}
