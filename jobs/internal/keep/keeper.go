// Package keep keeps checkpoints of workers of other nodes, and has those of a node's own workers
// kept by others.
//
// A Keeper holds what it was asked to hold, durably, until the job's origin does not need it any more, or
// has not been heard of for wire.KeepLease. A Saver reads the directory of a checkpoint, finds
// nodes that keep it, and has the origin hear of it.
package keep

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"zorilla/internal/atomicfile"
	"zorilla/internal/codec"
	"zorilla/internal/units"
	"zorilla/jobs"
	"zorilla/jobs/internal/wire"
	"zorilla/transfer"
	"zorilla/vicinity"
)

// FetchFunc brings the blobs of a manifest, and the manifest, from the holders into the store, pinned for the owner.
// Unless tell is nil it is called with what is there so far, also while that gets on and is no more yet.
type FetchFunc = func(ctx context.Context, owner string, manifest transfer.Hash, holders []vicinity.ID,
	tell func(transfer.Stats)) (transfer.Manifest, transfer.Stats, error)

// Worker names a worker among those of all jobs.
type Worker struct {
	Job jobs.ID
	jobs.RankAttempt
}

// Config is what a Keeper needs. All fields must be set.
type Config struct {
	Dir   string // absolute; it and nothing else is there
	Store transfer.PinStore
	Fetch FetchFunc
	// Limit is how many bytes of checkpoints the owner lets the node keep; 0 = none.
	Limit func() int64
	// Room is that of the disk of the store, see disk.Reserve.
	Room func(have, more int64) error
	Log  zerolog.Logger
}

// Keeper keeps checkpoints. Its methods may be called from any goroutine.
type Keeper struct {
	cfg Config

	mu     sync.Mutex // guards what follows
	of     map[name]*kept
	coming map[name]int64 // bytes of those that are fetched now
}

// name is that of a checkpoint.
type name struct {
	job          jobs.ID
	rank, number int
}

// kept is a checkpoint that is here; it is what its file says.
type kept struct {
	Manifest transfer.Hash `json:"manifest"`
	Bytes    int64         `json:"bytes"`
	From     vicinity.ID   `json:"from"` // the node of the rank
	until    time.Time
}

func (n name) pin() string { return fmt.Sprintf("kept/%s/%d/%d", n.job, n.rank, n.number) }

func (k *Keeper) path(n name) string {
	return filepath.Join(k.cfg.Dir, string(n.job), fmt.Sprintf("%d-%d", n.rank, n.number))
}

// Open returns a Keeper of what an earlier life of the node kept, and pins that.
func Open(cfg Config) (*Keeper, error) {
	k := &Keeper{cfg: cfg, of: map[name]*kept{}, coming: map[name]int64{}}
	dirs, err := os.ReadDir(cfg.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read kept checkpoints: %w", err)
	}
	for _, d := range dirs {
		files, err := os.ReadDir(filepath.Join(cfg.Dir, d.Name()))
		if err != nil {
			return nil, fmt.Errorf("read kept checkpoints: %w", err)
		}
		for _, f := range files {
			if err := k.load(jobs.ID(d.Name()), f); err != nil {
				cfg.Log.Warn().Err(err).Str("job", d.Name()).Str("file", f.Name()).Msg("a checkpoint that was kept here is not any more")
				_ = os.Remove(filepath.Join(cfg.Dir, d.Name(), f.Name())) // it is tried again at the next start
			}
		}
		_ = os.Remove(filepath.Join(cfg.Dir, d.Name())) // if it is empty
	}
	return k, nil
}

func (k *Keeper) load(job jobs.ID, f os.DirEntry) error {
	rank, number, _ := strings.Cut(f.Name(), "-")
	n := name{job: job}
	var err1, err2 error
	n.rank, err1 = strconv.Atoi(rank)
	n.number, err2 = strconv.Atoi(number)
	if err := errors.Join(err1, err2); err != nil || !job.Valid() {
		return errors.New("not a name of one")
	}
	b, err := os.ReadFile(k.path(n))
	if err != nil {
		return err
	}
	info, err := f.Info()
	if err != nil {
		return err
	}
	e := &kept{until: info.ModTime().Add(wire.KeepLease)}
	if err := codec.Unmarshal(b, e); err != nil {
		return err
	}
	if _, err := transfer.PinManifest(k.cfg.Store, n.pin(), e.Manifest); err != nil {
		return err
	}
	k.of[n] = e
	return nil
}

// Keep does what an origin, or a node of one of its workers, asks for. When it returns nil the new
// checkpoint is here for good. Errors wrap jobs.ErrRefused, or are why it could not be fetched.
func (k *Keeper) Keep(ctx context.Context, now time.Time, from vicinity.ID, m *wire.Keep) error {
	if m.All && from != m.Job.Origin() {
		return fmt.Errorf("%w: job %s does not originate at %s", jobs.ErrRefused, m.Job.Short(), from.Short())
	}
	if m.New != nil {
		if err := k.take(ctx, now, from, m); err != nil {
			return err
		}
	}
	k.needed(now, from, m)
	return nil
}

// take fetches a checkpoint, and keeps it.
func (k *Keeper) take(ctx context.Context, now time.Time, from vicinity.ID, asked *wire.Keep) error {
	m := asked.New
	n := name{asked.Job, m.Rank, m.Number}
	k.mu.Lock()
	if e := k.of[n]; e != nil && e.Manifest == m.Manifest {
		k.mu.Unlock()
		return k.Renew(now, n.job, n.rank, n.number)
	}
	err := k.room(m.Bytes)
	if _, again := k.coming[n]; again {
		err = fmt.Errorf("%w: checkpoint %d of rank %d is being fetched", jobs.ErrRefused, n.number, n.rank)
	}
	if err == nil {
		k.coming[n] = m.Bytes
	}
	k.mu.Unlock()
	if err != nil {
		return err
	}
	defer func() {
		k.mu.Lock()
		delete(k.coming, n)
		k.mu.Unlock()
	}()
	tree, _, err := k.cfg.Fetch(ctx, n.pin(), m.Manifest, m.Holders, nil)
	if err == nil && tree.Size() > m.Bytes {
		err = fmt.Errorf("%w: a checkpoint of %s is announced, and it has %s", jobs.ErrRefused, units.Bytes(m.Bytes), units.Bytes(tree.Size()))
	}
	if err != nil {
		k.cfg.Store.Discard(n.pin())
		return err
	}
	return k.hold(now, n, kept{Manifest: m.Manifest, Bytes: m.Bytes, From: from})
}

// Hold keeps a checkpoint of a worker of this node, whose blobs are in the store.
func (k *Keeper) Hold(now time.Time, self vicinity.ID, job jobs.ID, m *wire.Kept) error {
	k.mu.Lock()
	err := k.room(m.Bytes)
	k.mu.Unlock()
	if err != nil {
		return err
	}
	return k.hold(now, name{job, m.Rank, m.Number}, kept{Manifest: m.Manifest, Bytes: m.Bytes, From: self})
}

// room says why there is none for so many bytes more. The caller has the mutex.
func (k *Keeper) room(more int64) error {
	limit, have := k.cfg.Limit(), int64(0)
	for _, bytes := range k.coming {
		have += bytes
	}
	for _, e := range k.of {
		have += e.Bytes
	}
	if have+more > limit {
		return fmt.Errorf("%w: its owner lets it keep %s of checkpoints: max-kept", jobs.ErrRefused, units.Bytes(limit))
	}
	if err := k.cfg.Room(0, more); err != nil {
		return fmt.Errorf("%w: %w", jobs.ErrRefused, err)
	}
	return nil
}

// hold makes sure that a checkpoint is here whatever happens to the machine.
func (k *Keeper) hold(now time.Time, n name, e kept) error {
	tree, err := transfer.PinManifest(k.cfg.Store, n.pin(), e.Manifest)
	if err == nil {
		err = k.cfg.Store.Sync(append(tree.Chunks(), e.Manifest)...)
	}
	if err == nil {
		err = os.MkdirAll(filepath.Dir(k.path(n)), 0o700)
	}
	if err == nil {
		err = atomicfile.Write(k.path(n), codec.MustMarshal(e))
	}
	if err == nil {
		err = os.Chtimes(k.path(n), now, now)
	}
	if err != nil {
		k.cfg.Store.Discard(n.pin())
		return fmt.Errorf("keep a checkpoint: %w", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	e.until = now.Add(wire.KeepLease)
	k.of[n] = &e
	return nil
}

// Renew begins the lease of a checkpoint anew.
func (k *Keeper) Renew(now time.Time, job jobs.ID, rank, number int) error {
	n := name{job, rank, number}
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.of[n]
	if e == nil {
		return fmt.Errorf("%w: checkpoint %d of rank %d is not here", jobs.ErrNotFound, number, rank)
	}
	e.until = now.Add(wire.KeepLease)
	return os.Chtimes(k.path(n), now, now)
}

// needed lets go of what is not needed, and renews the leases of what is. Who may say so of a rank is the job's origin,
// and the node that has asked for the newest checkpoint of it.
func (k *Keeper) needed(now time.Time, from vicinity.ID, m *wire.Keep) {
	oldest, newest := map[int]int{}, map[int]int{}
	for _, r := range m.Needed {
		oldest[r.Rank] = r.Oldest
	}
	names := slices.DeleteFunc(k.names(), func(n name) bool { return n.job != m.Job })
	for _, n := range names {
		newest[n.rank] = max(newest[n.rank], n.number)
	}
	for _, n := range names {
		if from != m.Job.Origin() && k.from(name{n.job, n.rank, newest[n.rank]}) != from {
			continue
		}
		number, named := oldest[n.rank]
		switch {
		case m.New != nil && n.rank == m.New.Rank && n.number == m.New.Number:
		case named && n.number >= number:
			_ = k.Renew(now, n.job, n.rank, n.number) // it went meanwhile, or its file is not the disk's any more: the next start shows
		case named || m.All:
			k.drop(n)
		}
	}
}

// from is the node that has asked for a checkpoint.
func (k *Keeper) from(n name) (id vicinity.ID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if e := k.of[n]; e != nil {
		id = e.From
	}
	return id
}

// Expire lets go of what nobody has asked for during a lease.
func (k *Keeper) Expire(now time.Time) {
	for _, n := range k.names() {
		k.mu.Lock()
		over := k.of[n] != nil && now.After(k.of[n].until)
		k.mu.Unlock()
		if over {
			k.drop(n)
		}
	}
}

func (k *Keeper) names() (list []name) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for n := range k.of {
		list = append(list, n)
	}
	slices.SortFunc(list, func(a, b name) int {
		return strings.Compare(a.pin(), b.pin())
	})
	return list
}

func (k *Keeper) drop(n name) {
	k.mu.Lock()
	delete(k.of, n)
	k.mu.Unlock()
	if err := os.Remove(k.path(n)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		k.cfg.Log.Warn().Err(err).Str("job", string(n.job)).Msg("let go of a checkpoint")
	}
	k.cfg.Store.Discard(n.pin())
	_ = os.Remove(filepath.Dir(k.path(n))) // if it was the last one
}

// Bytes is how much is kept.
func (k *Keeper) Bytes() (n int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, e := range k.of {
		n += e.Bytes
	}
	return n
}
