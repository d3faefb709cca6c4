package pmi

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Bounds of what a rank may put. They are told to it, and what is over them is refused.
const (
	maxName  = 256     // bytes of the name of the space of keys
	maxKey   = 64      // bytes of a key
	maxValue = 4096    // bytes of a value
	maxLine  = 8 << 10 // bytes of a command

	// MaxPuts and MaxPutBytes bound what one rank of a program puts, and MaxBytes what all
	// do before a barrier, so that it fits in one message.
	MaxPuts     = 4096
	MaxPutBytes = 1 << 20
	MaxBytes    = 6 << 20
	maxKept     = 64 << 20 // bytes that all put before all barriers

	// MaxSize is how many ranks a job has at most, and MaxBarriers how often they meet.
	MaxSize     = 1 << 20
	MaxBarriers = 1 << 20
)

// ErrProtocol is wrapped by the errors of ranks that do not speak the protocol. They get
// no answers any more.
var ErrProtocol = errors.New("pmi: not the protocol")

// Aborted is the error of a rank that has called MPI_Abort.
type Aborted struct{ Code int }

func (a *Aborted) Error() string { return fmt.Sprintf("pmi: aborted with %d", a.Code) }

// Put is a key and its value.
type Put struct {
	Key   string `json:"k"`
	Value string `json:"v"`
}

// size is what a put takes, with what goes around it in a message.
func (p *Put) size() int { return len(p.Key) + len(p.Value) + 16 }

// Check refuses what no rank can have put.
func (p *Put) Check() error {
	switch {
	case p.Key == "" || len(p.Key) > maxKey || strings.ContainsAny(p.Key, " =\n\x00"):
		return fmt.Errorf("%w: key %.80q: want 1 to %d bytes without blanks", ErrProtocol, p.Key, maxKey)
	case len(p.Value) > maxValue || strings.ContainsAny(p.Value, "\n\x00"):
		return fmt.Errorf("%w: value of %s: want at most %d bytes of one line", ErrProtocol, p.Key, maxValue)
	}
	return nil
}

// Barrier is a rank that waits for all others.
type Barrier struct {
	Number int   `json:"number"`         // from 1
	Puts   []Put `json:"puts,omitempty"` // by this rank since the one before
}

// Pass lets a rank pass a barrier.
type Pass struct {
	Number int   `json:"number"`
	Puts   []Put `json:"puts,omitempty"` // by all ranks since the one before
}

// Place is where a rank is among those of its program.
type Place struct {
	Rank  int    `json:"rank"`
	Size  int    `json:"size"`
	Nodes []int  `json:"nodes,omitempty"` // which node each rank is at, from 0 in the order of their lowest ranks; nil = not told
	Name  string `json:"name"`            // of the program's run, the same for all ranks and no other
}

// Check refuses a place that no rank has.
func (p *Place) Check() error {
	if p.Size < 1 || p.Size > MaxSize || p.Rank < 0 || p.Rank >= p.Size || p.Nodes != nil && len(p.Nodes) != p.Size ||
		p.Name == "" || len(p.Name) >= maxName || strings.ContainsAny(p.Name, " =\n\x00") {
		return fmt.Errorf("pmi: no place of a rank: %d of %d, %d nodes, %.80q", p.Rank, p.Size, len(p.Nodes), p.Name)
	}
	return nil
}

// Rank is the manager's end of one rank: what it has put and got. It does no I/O and
// takes no time; its owner gives it each line, and sends what it answers.
type Rank struct {
	place  Place
	values map[string]string
	size   int   // bytes of values
	puts   []Put // since the last barrier
	count  int   // of its puts so far
	bytes  int   // of these
	passed int   // barriers
	waits  bool
	begun  bool // it has said init
	done   bool // it has said finalize
	spawn  bool // the lines of a spawn follow
}

// New returns the end of a rank that has said nothing yet.
func New(p Place) *Rank {
	return &Rank{place: p, values: values(&p)}
}

// values are what a rank can get before anybody has put something.
func values(p *Place) map[string]string {
	all := map[string]string{}
	if m := mapping(p.Nodes); m != "" && len(m) <= maxValue {
		all["PMI_process_mapping"] = m
	}
	return all
}

// Waits returns the barrier that the rank waits at, if it does.
func (r *Rank) Waits() (b Barrier, waits bool) {
	return Barrier{Number: r.passed + 1, Puts: r.puts}, r.waits
}

// Unfinished reports whether the rank has begun to speak, and not said that it is done:
// others may wait for it.
func (r *Rank) Unfinished() bool { return r.begun && !r.done }

// Pass lets the rank pass the barrier that it waits at, and returns what to send it: ""
// for another barrier.
func (r *Rank) Pass(p Pass) (answer string, err error) {
	if !r.waits || p.Number != r.passed+1 {
		return "", nil
	}
	if err := CheckPuts(p.Puts); err != nil {
		return "", err
	}
	for _, put := range p.Puts {
		r.keep(put)
	}
	if r.size > maxKept {
		return "", fmt.Errorf("%w: all ranks together put more than %d bytes", ErrProtocol, maxKept)
	}
	r.passed, r.waits, r.puts = p.Number, false, nil
	return "cmd=barrier_out\n", nil
}

func (r *Rank) keep(p Put) {
	if old, ok := r.values[p.Key]; ok {
		r.size -= (&Put{p.Key, old}).size()
	}
	r.size += p.size()
	r.values[p.Key] = p.Value
}

// Line takes a command, without its end of line, and returns the answer, or "" if there
// is none now.
func (r *Rank) Line(line string) (answer string, err error) {
	if r.spawn { // key=value, until the last
		if line != "endcmd" {
			return "", nil
		}
		r.spawn = false
		return "cmd=spawn_result rc=-1 errmsg=not_supported\n", nil
	}
	args, err := parse(line)
	if err != nil {
		return "", err
	}
	if r.waits {
		return "", fmt.Errorf("%w: %.80q while it waits at a barrier", ErrProtocol, line)
	}
	switch cmd := args["cmd"]; cmd {
	case "init":
		if r.done { // a second program of the same worker
			r.values, r.puts, r.size, r.count, r.bytes = values(&r.place), nil, 0, 0, 0
		}
		r.begun, r.done = true, false
		if args["pmi_version"] != "1" {
			return "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=-1\n", nil
		}
		return "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n", nil
	case "get_maxes":
		return fmt.Sprintf("cmd=maxes kvsname_max=%d keylen_max=%d vallen_max=%d\n", maxName, maxKey, maxValue), nil
	case "get_appnum":
		return "cmd=appnum appnum=0\n", nil
	case "get_universe_size":
		return "cmd=universe_size size=" + strconv.Itoa(r.place.Size) + "\n", nil
	case "get_my_kvsname":
		return "cmd=my_kvsname kvsname=" + r.place.Name + "\n", nil
	case "put":
		return r.put(args)
	case "get":
		return r.get(args), nil
	case "barrier_in":
		if r.passed >= MaxBarriers {
			return "", fmt.Errorf("%w: more than %d barriers", ErrProtocol, MaxBarriers)
		}
		r.waits = true
		return "", nil
	case "finalize":
		r.done = true
		return "cmd=finalize_ack\n", nil
	case "abort":
		code, err := strconv.Atoi(args["exitcode"])
		if err != nil {
			code = 1
		}
		return "", &Aborted{code}
	case "publish_name", "unpublish_name", "lookup_name":
		return "cmd=" + strings.TrimSuffix(cmd, "_name") + "_result info=not_supported rc=-1 msg=not_supported\n", nil
	case "spawn":
		if args["mcmd"] != "" {
			r.spawn = true
			return "", nil
		}
		return "cmd=spawn_result rc=-1 errmsg=not_supported\n", nil
	default:
		return "", fmt.Errorf("%w: command %.80q", ErrProtocol, cmd)
	}
}

// parse returns the words of a line, "cmd" also if it is written "mcmd", which is then
// there, too.
func parse(line string) (map[string]string, error) {
	args := map[string]string{}
	line, value, ok := strings.Cut(line, " value=")
	if ok { // the last one, and with blanks in Open MPI's
		args["value"] = value
	}
	for word := range strings.FieldsSeq(line) {
		key, value, ok := strings.Cut(word, "=")
		if !ok {
			return nil, fmt.Errorf("%w: %.80q", ErrProtocol, line)
		}
		if key == "mcmd" {
			args["cmd"] = value
		}
		args[key] = value
	}
	return args, nil
}

func (r *Rank) put(args map[string]string) (string, error) {
	p := Put{args["key"], args["value"]}
	if args["kvsname"] != r.place.Name {
		return "cmd=put_result rc=-1 msg=no_such_kvsname\n", nil
	}
	if p.Check() != nil {
		return "cmd=put_result rc=-1 msg=too_long\n", nil
	}
	r.count++
	r.bytes += p.size()
	if r.count > MaxPuts || r.bytes > MaxPutBytes {
		return "", fmt.Errorf("%w: more than %d puts or %d bytes by one rank", ErrProtocol, MaxPuts, MaxPutBytes)
	}
	r.puts = append(r.puts, p)
	r.keep(p)
	return "cmd=put_result rc=0 msg=success\n", nil
}

func (r *Rank) get(args map[string]string) string {
	if args["kvsname"] != r.place.Name {
		return "cmd=get_result rc=-1 msg=no_such_kvsname value=unknown\n"
	}
	value, ok := r.values[args["key"]]
	if !ok {
		return "cmd=get_result rc=-1 msg=no_such_key value=unknown\n"
	}
	return "cmd=get_result rc=0 msg=success value=" + value + "\n"
}

// mapping writes down which ranks are at which node as MPI libraries read it: blocks of
// (first node, nodes, ranks at each), for the ranks in their order.
func mapping(nodes []int) string {
	if len(nodes) == 0 {
		return ""
	}
	type block struct{ first, count, each int }
	var blocks []block
	for i := 0; i < len(nodes); {
		each := 1
		for i+each < len(nodes) && nodes[i+each] == nodes[i] {
			each++
		}
		if n := len(blocks) - 1; n >= 0 && blocks[n].each == each && blocks[n].first+blocks[n].count == nodes[i] {
			blocks[n].count++
		} else {
			blocks = append(blocks, block{nodes[i], 1, each})
		}
		i += each
	}
	var b strings.Builder
	b.WriteString("(vector")
	for _, k := range blocks {
		fmt.Fprintf(&b, ",(%d,%d,%d)", k.first, k.count, k.each)
	}
	b.WriteString(")")
	return b.String()
}
