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
	taking map[name]chan struct{} // what is fetched now; closed when that is over
	coming int64                  // bytes of these
}

// name is that of a checkpoint. Attempts of a rank that do not know of each other, because one of them was cut off,
// may give the same number to different ones.
type name struct {
	job          jobs.ID
	rank, number int
	manifest     transfer.Hash
}

// kept is a checkpoint that is here; it is what its file says.
type kept struct {
	Bytes int64       `json:"bytes"`
	By    vicinity.ID `json:"by"` // the node that asked to keep it
	until time.Time
}

func (n name) pin() string { return fmt.Sprintf("kept/%s/%s", n.job, n.file()) }

func (n name) file() string { return fmt.Sprintf("%d-%d-%s", n.rank, n.number, n.manifest) }

func (k *Keeper) path(n name) string { return filepath.Join(k.cfg.Dir, string(n.job), n.file()) }

// Open returns a Keeper of what an earlier life of the node kept, and pins that.
func Open(cfg Config) (*Keeper, error) {
	k := &Keeper{cfg: cfg, of: map[name]*kept{}, taking: map[name]chan struct{}{}}
	now := time.Now()
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
			if err := k.load(now, jobs.ID(d.Name()), f); err != nil {
				cfg.Log.Warn().Err(err).Str("job", d.Name()).Str("file", f.Name()).Msg("a checkpoint that was kept here is not any more")
				_ = os.Remove(filepath.Join(cfg.Dir, d.Name(), f.Name())) // it is tried again at the next start
			}
		}
		_ = os.Remove(filepath.Join(cfg.Dir, d.Name())) // if it is empty
	}
	return k, nil
}

func (k *Keeper) load(now time.Time, job jobs.ID, f os.DirEntry) error {
	n, err := parseName(job, f.Name())
	if err != nil {
		return err
	}
	b, err := os.ReadFile(k.path(n))
	if err != nil {
		return err
	}
	info, err := f.Info()
	if err != nil {
		return err
	}
	e := &kept{until: until(now, info.ModTime())}
	if err := codec.Unmarshal(b, e); err != nil {
		return err
	}
	if _, err := transfer.PinManifest(k.cfg.Store, n.pin(), n.manifest); err != nil {
		return err
	}
	k.of[n] = e
	return nil
}

func parseName(job jobs.ID, file string) (n name, err error) {
	parts := strings.Split(file, "-")
	if len(parts) != 3 || parts[2] == "" || !job.Valid() {
		return n, errors.New("not a name of one")
	}
	n.job = job
	var errs [3]error
	n.rank, errs[0] = strconv.Atoi(parts[0])
	n.number, errs[1] = strconv.Atoi(parts[1])
	n.manifest, errs[2] = transfer.ParseHash(parts[2])
	return n, errors.Join(errs[:]...)
}

// until is how long something is kept of which its origin was last heard at a time, by a clock that may have been
// wrong. While this node was not there nobody could tell it: there is time for that now.
func until(now, heard time.Time) time.Time {
	if earliest := now.Add(2*wire.RenewKeep - wire.KeepLease); heard.Before(earliest) {
		heard = earliest
	}
	if heard.After(now) {
		heard = now
	}
	return heard.Add(wire.KeepLease)
}

// Keep does what an origin, or a node of one of its workers, asks for. When it returns nil the new
// checkpoint is here for good. Errors wrap jobs.ErrRefused, or are why it could not be fetched.
func (k *Keeper) Keep(ctx context.Context, now time.Time, from vicinity.ID, m *wire.Keep) error {
	if m.All && from != m.Job.Origin() {
		return fmt.Errorf("%w: job %s does not originate at %s", jobs.ErrRefused, m.Job.Short(), from.Short())
	}
	if m.New != nil {
		if err := k.take(ctx, now, from, m.Job, m.New); err != nil {
			return err
		}
	}
	k.needed(now, from, m)
	return nil
}

// take fetches a checkpoint, and keeps it.
func (k *Keeper) take(ctx context.Context, now time.Time, from vicinity.ID, job jobs.ID, m *wire.Kept) error {
	n := name{job, m.Rank, m.Number, m.Manifest}
	done, err := k.begin(ctx, n, m.Bytes)
	if err != nil {
		return err
	}
	if done == nil {
		return k.renew(now, n)
	}
	defer done()
	tree, _, err := k.cfg.Fetch(ctx, n.pin(), m.Manifest, m.Holders, nil)
	if err == nil && tree.Size() > m.Bytes {
		err = fmt.Errorf("%w: a checkpoint of %s is announced, and it has %s", jobs.ErrRefused, units.Bytes(m.Bytes), units.Bytes(tree.Size()))
	}
	if err != nil {
		k.cfg.Store.Discard(n.pin())
		return err
	}
	return k.hold(now, n, kept{Bytes: m.Bytes, By: from})
}

// begin notes that a checkpoint is being fetched, until done is called; nil = it is here. It waits for whoever
// fetches it already: who fails must not let go of what another one keeps.
func (k *Keeper) begin(ctx context.Context, n name, bytes int64) (done func(), err error) {
	for {
		k.mu.Lock()
		other := k.taking[n]
		if other != nil && k.of[n] == nil {
			k.mu.Unlock()
			select {
			case <-other:
				continue
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		}
		defer k.mu.Unlock()
		if k.of[n] != nil {
			return nil, nil
		}
		if err := k.room(bytes); err != nil {
			return nil, err
		}
		over := make(chan struct{})
		k.taking[n], k.coming = over, k.coming+bytes
		return func() {
			k.mu.Lock()
			defer k.mu.Unlock()
			k.coming -= bytes
			delete(k.taking, n)
			close(over)
		}, nil
	}
}

// Hold keeps a checkpoint of a worker of this node, whose blobs are in the store.
func (k *Keeper) Hold(now time.Time, self vicinity.ID, job jobs.ID, m *wire.Kept) error {
	k.mu.Lock()
	err := k.room(m.Bytes)
	k.mu.Unlock()
	if err != nil {
		return err
	}
	return k.hold(now, name{job, m.Rank, m.Number, m.Manifest}, kept{Bytes: m.Bytes, By: self})
}

// room says why there is none for so many bytes more. The caller has the mutex.
func (k *Keeper) room(more int64) error {
	limit, have := k.cfg.Limit(), k.coming
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
	tree, err := transfer.PinManifest(k.cfg.Store, n.pin(), n.manifest)
	if err == nil {
		err = k.cfg.Store.Sync(append(tree.Chunks(), n.manifest)...)
	}
	if err == nil {
		err = k.write(n, codec.MustMarshal(e))
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

// write makes the file of a checkpoint durable, and the name of its directory, which goes with the last file there:
// perhaps just now.
func (k *Keeper) write(n name, b []byte) (err error) {
	for range 2 {
		if err = os.MkdirAll(filepath.Dir(k.path(n)), 0o700); err == nil {
			err = atomicfile.Write(k.path(n), b)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if err != nil {
		return err
	}
	return errors.Join(atomicfile.Sync(k.cfg.Dir), atomicfile.SyncDir(k.cfg.Dir))
}

// renew begins the lease of a checkpoint anew.
func (k *Keeper) renew(now time.Time, n name) error {
	k.mu.Lock()
	e := k.of[n]
	if e != nil {
		e.until = now.Add(wire.KeepLease)
	}
	k.mu.Unlock()
	if e == nil {
		return fmt.Errorf("%w: checkpoint %d of rank %d is not here", jobs.ErrNotFound, n.number, n.rank)
	}
	return os.Chtimes(k.path(n), now, now)
}

// needed drops what is not needed, and renews the leases of the rest: of all of the job for its origin, and for
// another node of what that asked to keep.
func (k *Keeper) needed(now time.Time, from vicinity.ID, m *wire.Keep) {
	oldest := map[int]int{}
	for _, r := range m.Needed {
		oldest[r.Rank] = r.Oldest
	}
	for _, n := range k.names() {
		if n.job != m.Job || from != m.Job.Origin() && from != k.by(n) {
			continue
		}
		number, named := oldest[n.rank]
		switch {
		case m.New != nil && n.rank == m.New.Rank && n.number == m.New.Number:
		case named && n.number >= number:
			_ = k.renew(now, n) // it went meanwhile, or its file is not the disk's any more: the next start shows
		case named || m.All:
			k.drop(n, time.Time{})
		}
	}
}

// by returns the node that asked to keep a checkpoint, "" if it is not here.
func (k *Keeper) by(n name) vicinity.ID {
	k.mu.Lock()
	defer k.mu.Unlock()
	if e := k.of[n]; e != nil {
		return e.By
	}
	return ""
}

// Expire lets go of what nobody has asked for during a lease.
func (k *Keeper) Expire(now time.Time) {
	for _, n := range k.names() {
		k.drop(n, now)
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

// drop lets go of a checkpoint; with a time only if its lease is over by then.
func (k *Keeper) drop(n name, now time.Time) {
	k.mu.Lock()
	e := k.of[n]
	if over := e != nil && (now.IsZero() || now.After(e.until)); !over {
		k.mu.Unlock()
		return
	}
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
