package model

import (
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/internal/participant"
	"zorilla/jobs/internal/wire"
	"zorilla/transfer"
	"zorilla/vicinity"
)

// What a node does about checkpoints beside its core: what package keep does, with files that are only their hash.

const (
	expireEvery  = time.Minute
	originWithin = 30 * time.Second
	keepWithin   = 30 * time.Second
	resumeWithin = 30 * time.Second
	goneWithin   = 3 * time.Second
	resumePause  = time.Second
	holderWithin = 10 * time.Second
	maxTries     = 8
)

// wants asks for a checkpoint that a worker is to begin with.
type wants struct{ keptName }

// savings has checkpoints of a node's workers kept, keeps those of others, and gives workers what they begin with.
type savings struct {
	m        *Model
	of       map[participant.WorkerID]*saver
	expiring bool // a look at leases is due
}

// saver has the checkpoints of a worker kept.
type saver struct {
	number int           // of the newest
	kept   []vicinity.ID // nodes that have it, beside this one
	oldest int           // that the origin needs
	awaits *jobs.Checkpoint
}

// hold keeps a checkpoint that is here.
func (v *savings) hold(now time.Time, from vicinity.ID, n keptName) {
	v.m.disk.hold(now, from, n)
	v.expireLater(now)
}

// expireLater looks now and then for what nobody has asked for.
func (v *savings) expireLater(now time.Time) {
	if v.expiring || len(v.m.disk.kept) == 0 {
		return
	}
	v.expiring = true
	v.m.after(now, expireEvery, func(now time.Time) {
		v.expiring = false
		v.m.disk.expire(now)
		v.expireLater(now)
	})
}

// keepAsked takes what keep.Keeper.Keep does. A node refuses now and then: its owner lets it keep no more.
func (v *savings) keepAsked(now time.Time, from vicinity.ID, number uint64, k *wire.Keep) {
	answer := func(why string) {
		if number > 0 {
			v.m.send(from, Reply, k.Job, nil, reply{number: number, refused: why})
		}
	}
	switch {
	case v.m.cfg.Hangs():
	case k.All && from != k.Job.Origin():
		answer("the job is not yours")
	case k.New == nil:
		v.m.disk.needed(now, from, k)
		answer("")
	case v.m.cfg.Rand.IntN(8) == 0:
		answer("no room")
	default:
		v.m.after(now, v.m.cfg.Disk()+time.Duration(v.m.cfg.Rand.Int64N(int64(time.Second))), func(now time.Time) {
			v.hold(now, from, keptName{k.Job, k.New.Rank, k.New.Number, k.New.Manifest})
			v.m.disk.needed(now, from, k)
			answer("")
		})
	}
}

// saveLater has a program make its next checkpoint.
func (v *savings) saveLater(now time.Time, id participant.WorkerID) {
	k := v.m.disk.worker(id)
	if k == nil || k.fate.Saves <= 0 || k.over {
		return
	}
	v.m.after(now, k.fate.Saves, func(now time.Time) {
		if k.finish(now); v.m.following[id] && !k.over && v.m.disk.worker(id) == k {
			v.save(now, k)
		}
	})
}

// save makes a checkpoint of a worker as keep.Saver does, and has it kept.
func (v *savings) save(now time.Time, k *worker) {
	s := v.of[k.WorkerID]
	if s == nil {
		s = &saver{number: max(k.numbered, v.m.core.Part.Numbered(k.WorkerID))}
		v.of[k.WorkerID] = s
	}
	s.number++
	k.numbered = s.number
	k.epoch++
	c := jobs.Checkpoint{Number: s.number, Epoch: k.epoch, Dir: "state", Files: 1, Bytes: 1}
	c.Manifest = transfer.HashOf(fmt.Appendf(nil, "%s %d.%d %d", k.Job, k.Rank, k.Attempt, c.Number))
	v.m.disk.happened(savedMade, k.WorkerID, &c)
	q := &keepers{v: v, id: k.WorkerID, s: s, c: c, left: slices.Clone(s.kept)}
	for _, id := range v.near(k.WorkerID) {
		if !slices.Contains(q.left, id) {
			q.left = append(q.left, id)
		}
	}
	q.left = q.left[:min(len(q.left), maxTries)]
	q.ask(now)
}

// near lists nodes that may keep a checkpoint.
func (v *savings) near(id participant.WorkerID) (list []vicinity.ID) {
	for _, near := range v.m.cfg.Nearer(time.Hour, maxTries) {
		if _, _, ok := v.m.cfg.Member(near.ID); ok {
			list = append(list, near.ID)
		}
	}
	order := func(node vicinity.ID) uint64 {
		h := fnv.New64a()
		fmt.Fprint(h, id.Job, id.Rank, node)
		return h.Sum64()
	}
	slices.SortFunc(list, func(a, b vicinity.ID) int {
		if order(a) < order(b) {
			return -1
		}
		return 1
	})
	return list
}

// keepers are nodes that are asked to keep a checkpoint.
type keepers struct {
	v      *savings
	id     participant.WorkerID
	s      *saver
	c      jobs.Checkpoint
	left   []vicinity.ID // that may be asked
	have   []vicinity.ID
	asking int
}

func (q *keepers) ask(now time.Time) {
	for len(q.have)+q.asking < jobs.Keepers && len(q.left) > 0 {
		to := q.left[0]
		q.left, q.asking = q.left[1:], q.asking+1
		body := &wire.Keep{Job: q.id.Job, New: &wire.Kept{
			Rank: q.id.Rank, Number: q.c.Number, Manifest: q.c.Manifest, Bytes: q.c.Bytes, Holders: []vicinity.ID{q.v.m.cfg.Self.ID},
		}}
		q.v.m.askThen(now, to, q.id.Job, body, keepWithin, func(now time.Time, ok bool) {
			if q.asking--; ok {
				q.have = append(q.have, to)
			}
			q.ask(now)
		})
	}
	if q.asking == 0 {
		q.kept(now)
	}
}

// kept keeps the checkpoint here, too, and has its origin hear of it.
func (q *keepers) kept(now time.Time) {
	m, v := q.v.m, q.v
	q.s.kept = q.have
	here := m.cfg.Rand.IntN(8) > 0 && !m.cfg.Hangs()
	m.after(now, m.cfg.Disk(), func(now time.Time) {
		c := q.c
		c.Holders = slices.Clone(q.have)
		if here {
			v.hold(now, m.cfg.Self.ID, nameOf(q.id.Job, q.id.Rank, &c))
			c.Holders = append(c.Holders, m.cfg.Self.ID)
		}
		if len(c.Holders) == 0 {
			v.saveLater(now, q.id)
			return
		}
		if !m.core.Part.Checkpointed(now, q.id, c) {
			return
		}
		q.s.awaits = &c
		m.after(now, originWithin, func(now time.Time) {
			if q.s.awaits == &c {
				q.s.awaits = nil
				v.saveLater(now, q.id)
			}
		})
	})
}

// acknowledged takes what the origin has of the checkpoints of a worker, and lets keepers drop older ones.
func (v *savings) acknowledged(now time.Time, id participant.WorkerID, a *wire.CheckpointAck) {
	s := v.of[id]
	if s == nil || a == nil {
		return
	}
	s.oldest = max(s.oldest, a.Oldest)
	c := s.awaits
	if c == nil || a.Known < c.Number {
		return
	}
	s.awaits = nil
	v.m.disk.happened(savedTold, id, c)
	keep := &wire.Keep{Job: id.Job, Needed: []wire.Needed{{Rank: id.Rank, Oldest: s.oldest}}}
	for _, to := range c.Holders {
		if to == v.m.cfg.Self.ID {
			v.m.disk.needed(now, to, keep)
		} else {
			v.m.send(to, Request, id.Job, keep, request{body: keep})
		}
	}
	v.saveLater(now, id)
}

// resume gets the checkpoint that a worker begins with, as keep.Resumer does.
func (v *savings) resume(now time.Time, id participant.WorkerID, c *jobs.Checkpoint, done func(now time.Time, err error)) {
	v.resumeSince(now, now, id, c, done)
}

func (v *savings) resumeSince(now, begun time.Time, id participant.WorkerID, c *jobs.Checkpoint, done func(now time.Time, err error)) {
	asking, got := len(c.Holders), false
	for _, to := range c.Holders {
		v.m.askThen(now, to, id.Job, wants{nameOf(id.Job, id.Rank, c)}, holderWithin, func(now time.Time, ok bool) {
			asking--
			switch {
			case got:
				return
			case ok:
				got = true
				done(now, nil)
				return
			case asking > 0:
				return
			}
			within := goneWithin
			if slices.ContainsFunc(c.Holders, func(id vicinity.ID) bool { _, _, member := v.m.cfg.Member(id); return member }) {
				within = resumeWithin
			}
			if now.Sub(begun) < within {
				v.m.after(now, resumePause, func(now time.Time) { v.resumeSince(now, begun, id, c, done) })
				return
			}
			v.m.disk.happened(savedMissing, id, c)
			done(now, fmt.Errorf("%w: checkpoint %d", jobs.ErrNoCheckpoint, c.Number))
		})
	}
}

// wanted answers who wants a checkpoint.
func (v *savings) wanted(from vicinity.ID, number uint64, w wants) {
	if v.m.cfg.Hangs() {
		return
	}
	why := ""
	if _, ok := v.m.disk.kept[w.keptName]; !ok {
		why = "it is not here"
	}
	v.m.send(from, Reply, w.job, nil, reply{number: number, refused: why})
}
