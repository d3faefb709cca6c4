package executor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"zorilla/internal/atomicfile"
	"zorilla/jobs"
	"zorilla/jobs/internal/participant"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/quota"
)

// toldFile, which the worker cannot touch, holds the epoch that it was told of last,
// with all that belongs to that.
const toldFile = "told"

// tables are the host files, and topology files, that workers of this node began with, for others of their
// job: a link costs less than a file.
type tables struct {
	mu   sync.Mutex
	made map[jobs.ID]madeTable
}

type madeTable struct {
	root, hosts string
	epoch       int64
}

// give gives a worker that has not begun its job's table, and the topology of a job with groups, which does not
// change as long as the table is the same; nil = it has none.
func (t *tables) give(root string, job jobs.ID, hosts string, epoch int64, topology func() string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	names := []string{wire.HostFileName}
	if epoch > 0 {
		names = append(names, wire.EpochFileName)
	}
	if topology != nil {
		names = append(names, wire.TopologyFileName)
	}
	if like, ok := t.made[job]; ok && like.hosts == hosts && like.epoch == epoch && linkTable(like.root, root, names) == nil {
		return nil
	}
	// What is linked lies where no worker can put something else in its place, and is to
	// be read: who wants it otherwise makes a copy.
	loose := atomicfile.How{Mode: 0o444, Loose: true}
	err := loose.Write(filepath.Join(root, wire.HostFileName), []byte(hosts))
	if err == nil && epoch > 0 {
		err = loose.Write(filepath.Join(root, wire.EpochFileName), epochText(epoch))
	}
	if err == nil && topology != nil {
		err = loose.Write(filepath.Join(root, wire.TopologyFileName), []byte(topology()))
	}
	if err == nil && linkTable(root, root, names) == nil {
		t.made[job] = madeTable{root, hosts, epoch}
		return nil
	}
	err = errors.Join(err, writeTable(root, hosts, epoch)) // not every file system has links
	if topology != nil {
		err = errors.Join(err, giveFile(root, wire.TopologyFileName, topology()))
	}
	return err
}

func (t *tables) forget(job jobs.ID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.made, job)
}

// linkTable gives a worker files that lie in the root of another one, or its own.
func linkTable(from, to string, names []string) error {
	if err := makeTmp(to); err != nil {
		return err
	}
	for _, name := range names {
		if err := os.Link(filepath.Join(from, name), filepath.Join(to, "tmp", name)); err != nil {
			return err
		}
	}
	return nil
}

// makeTmp makes the temporary directory of a worker whose root is there.
func makeTmp(root string) error {
	if err := os.Mkdir(filepath.Join(root, "tmp"), 0o700); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

func epochText(epoch int64) []byte { return fmt.Appendln(nil, epoch) }

// writeTable replaces a worker's host file, and then its epoch file, each in one
// step: who reads the epoch first and then the hosts has hosts at least as new.
func writeTable(root, hosts string, epoch int64) error {
	if err := makeTmp(root); err != nil {
		return err
	}
	if err := giveFile(root, wire.HostFileName, hosts); err != nil {
		return err
	}
	if epoch == 0 {
		return nil
	}
	return giveFile(root, wire.EpochFileName, string(epochText(epoch)))
}

// giveFile puts a file into a worker's temporary directory. It is written where
// the worker cannot reach it: there may be a link of that name.
func giveFile(root, name, text string) error {
	to, tmp := filepath.Join(root, "tmp", name), filepath.Join(root, "tmp")
	how := atomicfile.How{Mode: 0o644, Temp: root, Loose: true}
	err := how.Write(to, []byte(text))
	if errors.Is(err, syscall.EXDEV) { // the file system bounds what is in there
		how.Prepare = func(f *os.File) error { return quota.Join(f, tmp) }
		err = how.Write(to, []byte(text))
	}
	return err
}

// writtenEpoch returns the epoch that an adopted worker was given last.
func writtenEpoch(root string, start *wire.Start) int64 {
	b, err := os.ReadFile(filepath.Join(root, toldFile))
	if err != nil { // none since its start
		return start.Epoch
	}
	epoch, err := strconv.ParseInt(string(b), 10, 64)
	if err != nil {
		return start.Epoch
	}
	return max(epoch, start.Epoch)
}

// table gives a worker its job's table.
func (x *Executor) table(e participant.DoTable) {
	proc, fenced := x.procs[e.Worker], x.fences.within(e.Worker.Job, x.procs)
	x.spawn(func() func(time.Time) {
		root := x.root(e.Worker)
		defer x.bin.Enter(root)()
		if isMissing(root) {
			return func(time.Time) { x.part.Tabled(e.Worker, 0, false) }
		}
		log := x.cfg.Log.With().Str("job", string(e.Worker.Job)).Int("rank", e.Worker.Rank).Logger()
		if len(fenced) > 0 { // whom it reads of it reaches
			if err := saveNodes(root, e.Table.Nodes); err != nil {
				log.Warn().Err(err).Msg("note the nodes of a job")
				return func(time.Time) { x.part.Tabled(e.Worker, 0, false) }
			}
			x.fences.update(e.Worker.Job, e.Table.Epoch, e.Table.Nodes)
			if x.fences.renew(e.Worker.Job, fenced) != nil { // the next answer brings it again
				return func(time.Time) { x.part.Tabled(e.Worker, 0, false) }
			}
		}
		if err := writeTable(root, e.Table.File, e.Table.Epoch); err != nil {
			log.Warn().Err(err).Msg("write the host file")
			if errors.Is(err, syscall.ENOSPC) { // the next answer brings it again
				return func(time.Time) { x.part.Tabled(e.Worker, 0, false) }
			}
		}
		if e.Signal > 0 && proc != nil {
			proc.Signal(e.Signal)
		}
		// Now, so that a node that is killed meanwhile does all of it again.
		if err := (atomicfile.How{Loose: true}).Write(filepath.Join(root, toldFile), []byte(strconv.FormatInt(e.Table.Epoch, 10))); err != nil {
			log.Warn().Err(err).Msg("note the epoch of a worker")
		}
		return func(time.Time) { x.part.Tabled(e.Worker, e.Table.Epoch, true) }
	})
}
