package gpu

import (
	"context"
	"encoding/csv"
	"errors"
	"math"
	"os"
	"os/exec"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"zorilla/internal/sanitize"
)

// Use is how a GPU is used, as its driver says.
type Use struct {
	Model  string `json:"model,omitempty"`
	Memory int64  `json:"memory,omitempty"` // bytes; 0 = not known
	Used   int64  `json:"used,omitempty"`   // bytes of it
	Busy   int    `json:"busy"`             // percent of the last moment, up to a second, in which it computed; -1 = not known
}

// Bounds of what a GPU is said to be: others are told, and believe no more.
const (
	MaxModel = 64 // bytes
	MaxUses  = 64
)

const (
	lookAgain  = 10 * time.Second // looking takes some processor time, and seconds where no program uses the GPUs
	lookWithin = 20 * time.Second
)

// Meter looks at how the GPUs of a machine are used, whenever it is asked and has not looked
// lately. The zero value looks at none. Its methods may be called from any goroutine.
type Meter struct {
	machine *Machine
	run     func(ctx context.Context, path string, env []string, args ...string) ([]byte, error)

	mu     sync.Mutex // guards what follows
	looked time.Time
	looks  bool
	last   []Use
}

// NewMeter returns one for the first GPUs of a machine, as many as count.
func NewMeter(m Machine, count int) *Meter {
	m.GPUs = m.GPUs[:min(len(m.GPUs), max(0, count), MaxUses)]
	return &Meter{machine: &m, run: output}
}

func output(ctx context.Context, path string, env []string, args ...string) ([]byte, error) {
	c := exec.CommandContext(ctx, path, args...)
	c.Env, c.WaitDelay = append(os.Environ(), env...), time.Second
	return c.Output()
}

// Uses returns what was seen last, by number, and does not wait for a new look, which it
// starts if one is due. Nil = nothing is known.
func (m *Meter) Uses() []Use {
	if m == nil || m.machine == nil || len(m.machine.GPUs) == 0 {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.looks && time.Since(m.looked) >= lookAgain {
		m.looks = true
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), lookWithin)
			defer cancel()
			uses := sound(m.look(ctx))
			m.mu.Lock()
			defer m.mu.Unlock()
			m.last, m.looked, m.looks = uses, time.Now(), false
		}()
	}
	if m.last == nil {
		m.last = sound(m.known())
	}
	return m.last
}

// sound leaves out what cannot be true.
func sound(uses []Use) []Use {
	for i := range uses {
		if !uses[i].Sound() {
			uses[i] = Use{Busy: -1}
		}
	}
	return uses
}

// known is what is known without a look.
func (m *Meter) known() []Use {
	uses := make([]Use, len(m.machine.GPUs))
	for i, g := range m.machine.GPUs {
		uses[i] = Use{Model: g.Model, Busy: -1}
	}
	return uses
}

func (m *Meter) look(ctx context.Context) []Use {
	uses := m.known()
	if m.machine.kind == amd {
		for i, g := range m.machine.GPUs {
			number := func(name string) int64 {
				n, err := strconv.ParseInt(line(m.machine.root, path.Join(g.bus, name)), 10, 64)
				if err != nil {
					return -1
				}
				return n
			}
			uses[i].Memory, uses[i].Used = max(0, number("mem_info_vram_total")), max(0, number("mem_info_vram_used"))
			uses[i].Busy = int(min(100, number("gpu_busy_percent")))
		}
		return uses
	}
	program, env, err := m.program()
	if err != nil {
		return uses
	}
	out, err := m.run(ctx, program, env, "--query-gpu=pci.bus_id,name,memory.total,memory.used,utilization.gpu", "--format=csv,noheader,nounits")
	if err != nil {
		return uses
	}
	read(out, m.machine.GPUs, uses)
	return uses
}

// program is nvidia-smi, and what it needs in its environment.
func (m *Meter) program() (path string, env []string, err error) {
	for name, value := range m.machine.search() {
		env = append(env, name+"="+value)
	}
	if path, err = exec.LookPath(smi); err == nil {
		return path, env, nil
	}
	if dirs := m.machine.Programs(); len(dirs) > 0 {
		return dirs[0] + "/" + smi, env, nil
	}
	return "", nil, errors.New("no " + smi)
}

// read takes what nvidia-smi prints of the GPUs, which it finds by their PCI addresses, or
// where none is known by their order.
func read(out []byte, gpus []GPU, uses []Use) {
	r := csv.NewReader(strings.NewReader(string(out)))
	r.TrimLeadingSpace, r.FieldsPerRecord = true, -1
	all, _ := r.ReadAll()
	for n, f := range all {
		if len(f) != 5 {
			continue
		}
		i := n
		for k, g := range gpus {
			if g.bus != "" && sameBus(g.bus, f[0]) {
				i = k
				break
			}
			if g.bus != "" {
				i = -1
			}
		}
		if i < 0 || i >= len(uses) {
			continue
		}
		if uses[i].Model == "" {
			uses[i].Model = f[1]
		}
		uses[i].Memory, uses[i].Used, uses[i].Busy = mebibytes(f[2]), mebibytes(f[3]), -1
		if p, err := strconv.Atoi(f[4]); err == nil && p >= 0 && p <= 100 {
			uses[i].Busy = p
		}
	}
}

// sameBus compares PCI addresses, of which nvidia-smi writes longer ones than the kernel.
func sameBus(a, b string) bool {
	short := func(s string) string {
		domain, rest, _ := strings.Cut(strings.ToLower(s), ":")
		return strings.TrimLeft(domain, "0") + ":" + rest
	}
	return short(a) == short(b)
}

// mebibytes reads a number of them; what is none is 0.
func mebibytes(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64>>20 {
		return 0
	}
	return n << 20
}

// Sound reports whether it can be true of any GPU.
func (u Use) Sound() bool {
	return len(u.Model) <= MaxModel && sanitize.Printable(u.Model) &&
		u.Memory >= 0 && u.Used >= 0 && u.Used <= max(u.Memory, 0) && u.Busy >= -1 && u.Busy <= 100
}
