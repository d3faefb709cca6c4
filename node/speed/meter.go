package speed

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"time"

	"zorilla/internal/atomicfile"
	"zorilla/node/usage"
	"zorilla/vicinity"
)

const lookEvery = 20 * time.Second

// Meter measures the power of a core once and keeps it in a file.
type Meter struct {
	Root fs.FS  // of the machine
	File string // where the result is kept
	// Cores of the machine; Busy says whether jobs have some of them, or are about to.
	Cores int
	Busy  func() bool
	// Measure is the function of that name; tests have another.
	Measure func() int64
	// Every is how often it looks whether nothing else runs, for the first time as much later,
	// since the start of a node is work; 0 = 20 s.
	Every time.Duration
}

// kept is a result, with the processor that it is of.
type kept struct {
	Model string `json:"model"`
	Power int64  `json:"power"`
}

// Kept returns the result of an earlier start on such a processor; 0 = there is none.
func (m *Meter) Kept() int64 {
	b, err := os.ReadFile(m.File)
	if err != nil {
		return 0
	}
	var k kept
	if json.Unmarshal(b, &k) != nil || k.Model != Model(m.Root) || !(vicinity.Speeds{Power: k.Power}).Valid() {
		return 0
	}
	return k.Power
}

// Await measures when neither jobs nor anything else has used the machine for a minute, and
// keeps the result. It returns 0 if ctx ends before; the result is good although there is an
// error, which says why it was not kept.
func (m *Meter) Await(ctx context.Context) (int64, error) {
	tick := time.NewTicker(cmp.Or(m.Every, lookEvery))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return 0, nil
		}
		if !m.idle() {
			continue
		}
		power := m.Measure()
		if power <= 0 || m.Busy() { // what began meanwhile may have slowed it down
			continue
		}
		b, err := json.Marshal(kept{Model(m.Root), power})
		if err == nil {
			err = atomicfile.How{Loose: true}.Write(m.File, append(b, '\n'))
		}
		if err != nil {
			err = fmt.Errorf("keep the power of this machine: %w", err)
		}
		return power, err
	}
}

// idle reports whether so little runs on the machine that a core of it has nothing to do.
func (m *Meter) idle() bool {
	if m.Busy() {
		return false
	}
	load, _ := usage.Machine(m.Root)
	return load <= max(0.5, float64(m.Cores)/8)
}
