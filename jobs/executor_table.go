package jobs

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"zorilla/internal/atomicfile"
	"zorilla/internal/codec"
)

// The files that tell a worker of its job's table. They are where its TMPDIR
// is, which it can read whatever confines it.
const (
	hostFileName  = "hostfile"
	epochFileName = "epoch"
	// toldFile, which the worker cannot touch, holds the epoch that it was told
	// of last, with all that belongs to that.
	toldFile = "told"
)

// hostFile writes a table as lines "address slots=N", by lowest rank. A node
// whose address is not known any more is left out.
func hostFile(hosts []Host) string {
	var b strings.Builder
	for _, h := range hosts {
		if h.Addr != "" {
			fmt.Fprintf(&b, "%s slots=%d\n", h.Addr, len(h.Ranks))
		}
	}
	return b.String()
}

// check refuses a table that is not what hostFile writes: programs rely on it.
func (t *Table) check() error {
	bad := t.Epoch < 1
	for line := range strings.Lines(t.File) {
		addr, slots, found := strings.Cut(strings.TrimSuffix(line, "\n"), " slots=")
		_, err := netip.ParseAddr(addr)
		n, err2 := strconv.Atoi(slots)
		bad = bad || !found || err != nil || err2 != nil || n < 1 || n > MaxRanks || !strings.HasSuffix(line, "\n")
	}
	if bad {
		return fmt.Errorf("table: %w", codec.ErrMalformed)
	}
	return nil
}

// writeTable replaces a worker's host file, and then its epoch file, each in one
// step: who reads the epoch first and then the hosts has hosts at least as new.
func writeTable(root, hosts string, epoch int64) error {
	if err := os.MkdirAll(filepath.Join(root, "tmp"), 0o755); err != nil {
		return err
	}
	if err := giveFile(root, hostFileName, hosts); err != nil {
		return err
	}
	if epoch == 0 {
		return nil
	}
	return giveFile(root, epochFileName, strconv.FormatInt(epoch, 10)+"\n")
}

// giveFile puts a file into a worker's temporary directory. It is written where
// the worker cannot reach it: there may be a link of that name.
func giveFile(root, name, text string) error {
	return atomicfile.How{Mode: 0o644, Temp: root, Loose: true}.Write(filepath.Join(root, "tmp", name), []byte(text))
}

// toldEpoch returns the epoch that a worker of before knows.
func toldEpoch(root string, start *Start) int64 {
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
func (x *executor) table(e doTable) {
	proc := x.procs[e.worker]
	x.spawn(func() func(time.Time) {
		root := x.root(e.worker)
		log := x.s.log.With().Str("job", string(e.worker.Job)).Int("rank", e.worker.Rank).Logger()
		if err := writeTable(root, e.table.File, e.table.Epoch); err != nil {
			log.Warn().Err(err).Msg("write the host file")
			if errors.Is(err, syscall.ENOSPC) { // the next answer brings it again
				return func(time.Time) { x.part.tabled(e.worker, 0, false) }
			}
		}
		if e.signal > 0 && proc != nil {
			proc.Signal(e.signal)
		}
		// Now, so that a node that is killed meanwhile does all of it again.
		if err := (atomicfile.How{Loose: true}).Write(filepath.Join(root, toldFile), []byte(strconv.FormatInt(e.table.Epoch, 10))); err != nil {
			log.Warn().Err(err).Msg("note the epoch of a worker")
		}
		return func(time.Time) { x.part.tabled(e.worker, e.table.Epoch, true) }
	})
}

// checkSignal returns what is wrong, as a user sees it.
func (s *Spec) checkSignal() string {
	switch {
	case s.SignalOnChange == "":
	case signalNumber(s.SignalOnChange) == 0:
		return fmt.Sprintf("--signal-on-change %.20q: want HUP, INT, USR1, USR2, URG or WINCH", s.SignalOnChange)
	case s.Array != nil:
		return "--signal-on-change: tasks of an array do not know of each other"
	case s.Replicas > 1:
		return "--signal-on-change: nothing changes for the copies of a job with --replicas"
	}
	return ""
}

// signalNumber returns the signal of --signal-on-change, or 0.
func signalNumber(name string) int {
	switch name {
	case "HUP":
		return int(syscall.SIGHUP)
	case "INT":
		return int(syscall.SIGINT)
	case "USR1":
		return int(syscall.SIGUSR1)
	case "USR2":
		return int(syscall.SIGUSR2)
	case "URG":
		return int(syscall.SIGURG)
	case "WINCH":
		return int(syscall.SIGWINCH)
	}
	return 0
}
