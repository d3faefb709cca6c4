package model_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"zorilla/jobs"
	"zorilla/jobs/model"
	"zorilla/testnet/sim"
	"zorilla/vicinity"
)

// conversation is what the nodes of one script say to each other, and do. The commands of
// scripts are in testdata/README.md.
type conversation struct {
	*world
	t      *testing.T
	names  []string // of nodes
	jobs   map[string]jobs.ID
	run    map[string]time.Duration // how long its workers do
	next   string                   // the name of a job that is being submitted
	losses []*loss
	asked  map[string]string // requests by who sent them, to whom, with which number
	last   map[string]string // what was reported and answered last, by from, to and job
	said   func(from int, text string) bool
	met    bool // said has been true
	quiet  bool
	lines  []string
}

// loss is a message that will be lost: the next that begins so.
type loss struct {
	text     string
	from, to int // -1 = anybody
}

// TestConversations runs the scripts in testdata; with -rewrite it writes into them what the
// nodes say now.
func TestConversations(t *testing.T) {
	scripts, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, script := range scripts {
		t.Run(strings.TrimSuffix(filepath.Base(script), ".txt"), func(t *testing.T) {
			c := &conversation{t: t, jobs: map[string]jobs.ID{}, run: map[string]time.Duration{}, asked: map[string]string{}, last: map[string]string{}}
			datadriven.RunTest(t, script, func(t *testing.T, d *datadriven.TestData) string {
				c.t, c.lines, c.quiet, c.met, c.said = t, nil, d.HasArg("quiet"), false, nil
				if err := c.do(d); err != nil {
					d.Fatalf(t, "%s: %v", d.FullCmd(), err)
				}
				c.sound(t)
				return strings.Join(append(c.lines, ""), "\n")
			})
			for _, x := range c.losses {
				t.Errorf("nobody has sent what was to be lost: %s", x.text)
			}
		})
	}
}

func (c *conversation) do(d *datadriven.TestData) error {
	if c.world == nil && d.Cmd != "nodes" {
		return fmt.Errorf("begin with nodes")
	}
	switch d.Cmd {
	case "nodes":
		return c.begin(d)
	case "submit":
		return c.submit(d)
	case "lose":
		c.losses = append(c.losses, &loss{says(d), c.party(d, "from"), c.party(d, "to")})
	case "tick":
		long, err := time.ParseDuration(c.arg(d, 0))
		if err != nil {
			return err
		}
		c.wait(long)
	case "until":
		return c.until(d)
	case "kill":
		c.kill(c.at(d, true), d.HasArg("machine"))
	case "restart":
		i := c.at(d, false)
		c.happens(c.net.ID(i), "", "is started again")
		c.Revive(i, c.Clock(i))
	case "cancel":
		id := c.job(c.arg(d, 0))
		if c.origin(id) == nil {
			return fmt.Errorf("the node of the job is down")
		}
		c.happens(id.Origin(), id, "is asked by a user to cancel")
		i, _ := c.net.Index(id.Origin())
		c.cancel(i, id)
	case "state":
		c.state()
	default:
		return fmt.Errorf("no such command: see testdata/README.md")
	}
	return nil
}

// begin makes the nodes.
func (c *conversation) begin(d *datadriven.TestData) error {
	var slots []int
	step := 10 * time.Millisecond
	for _, a := range d.CmdArgs {
		switch n := 0; {
		case a.Key == "chain":
		case a.Key == "step":
			a.Scan(c.t, 0, &step)
		default:
			a.Scan(c.t, 0, &n)
			c.names, slots = append(c.names, a.Key), append(slots, n)
		}
	}
	n := len(slots)
	graph := func(o *sim.Overlay) sim.Graph { return sim.Ideal(o, 1) }
	if d.HasArg("chain") {
		links := make([][]int, n)
		for i := range n - 1 {
			links[i], links[i+1] = append(links[i], i+1), append(links[i+1], i)
		}
		graph = func(o *sim.Overlay) sim.Graph {
			return sim.Linked(o, links, func(node, other int) bool { return slices.Contains(links[node], other) })
		}
	}
	c.world = newWorldOn(sim.Line(n, n, step), graph, 1, slots...)
	c.net.SetNoise(sim.Noise{})
	c.audit.Note, c.lose = c.happens, c.sends
	c.fate = func(_ jobs.ID, spec *jobs.Spec, _ jobs.RankAttempt) model.Fate {
		return model.Fate{Prepare: time.Millisecond, Run: c.run[spec.Name], Stop: 10 * time.Millisecond}
	}
	return nil
}

func (c *conversation) submit(d *datadriven.TestData) error {
	node, name := c.at(d, true), c.arg(d, 1)
	spec, run := jobs.Spec{Name: name}, time.Duration(0)
	for _, a := range d.CmdArgs[2:] {
		switch a.Key {
		case "n":
			if lo, hi, ok := strings.Cut(a.Vals[0], ".."); ok {
				fmt.Sscan(lo, &spec.Min)
				fmt.Sscan(hi, &spec.Max)
				continue
			}
			a.Scan(c.t, 0, &spec.Min)
			spec.Max = spec.Min
		case "strategy":
			spec.Strategy = a.Vals[0]
		case "retries":
			a.Scan(c.t, 0, &spec.Retries)
		case "priority":
			a.Scan(c.t, 0, &spec.Priority)
		case "run":
			a.Scan(c.t, 0, &run)
		default:
			return fmt.Errorf("no such option of a job: %s", a.Key)
		}
	}
	c.run[name], c.next = run, name
	_, err := c.world.submit(node, spec)
	return err
}

// kill ends a node, or its machine.
func (c *conversation) kill(i int, machine bool) {
	text := "is killed"
	if machine {
		text = "fails with its machine"
	}
	c.happens(c.net.ID(i), "", "%s", text)
	clear(c.last)
	c.Kill(i, machine)
}

// until lets time pass until a node says something, or a job is in a state.
func (c *conversation) until(d *datadriven.TestData) error {
	done := func() bool { return c.met }
	if text := says(d); text != "" {
		i := c.node(c.arg(d, 0))
		c.said = func(from int, said string) bool { return from == i && strings.HasPrefix(said, text) }
	} else {
		id, state := c.job(c.arg(d, 0)), jobs.State(c.arg(d, 1))
		done = func() bool { return c.world.state(id) == state }
	}
	if !c.world.run(10*time.Minute, done) {
		return fmt.Errorf("ten minutes have passed")
	}
	return nil
}

// sends notes a message that is being sent, and reports whether it is lost.
func (c *conversation) sends(from, to int, m model.Message) bool {
	text, _, _ := strings.Cut(m.Describe(), " [")
	c.audit.Look(c.Local(from), c.Jobs(from)) // what it says is what came of that
	if n := m.Asks(); n > 0 {
		c.asked[fmt.Sprint(from, to, n)] = text
	}
	routine := strings.HasPrefix(text, "reports ")
	if n := m.Answers(); n > 0 {
		question, _, _ := strings.Cut(c.asked[fmt.Sprint(to, from, n)], " ")
		text = strings.Replace(text, "answers", "answers "+question+":", 1)
		routine = question == "reports"
		if strings.HasSuffix(text, "reports: yes") {
			text = "answers reports: knows no such job"
		}
	}
	c.met = c.met || c.said != nil && c.said(from, text)
	i := slices.IndexFunc(c.losses, func(x *loss) bool {
		return strings.HasPrefix(text, x.text) && (x.from < 0 || x.from == from) && (x.to < 0 || x.to == to)
	})
	if i >= 0 {
		c.losses = slices.Delete(c.losses, i, i+1)
	}
	key := fmt.Sprint(from, to, m.Job)
	if again := routine && c.last[key] == text; c.quiet || again && i < 0 {
		return i >= 0
	}
	c.last[key] = text
	line := fmt.Sprintf("%s -> %s: %s", c.names[from], c.names[to], text)
	if i >= 0 {
		line += ", which is lost"
	}
	c.line(m.Job, line)
	return i >= 0
}

// happens notes what happens at a node.
func (c *conversation) happens(node vicinity.ID, job jobs.ID, format string, args ...any) {
	c.line(job, node.Short()+" "+fmt.Sprintf(format, args...))
}

// line prints a line about a job; "" = about none.
func (c *conversation) line(job jobs.ID, text string) {
	if job != "" {
		if c.next != "" { // nothing is said about it before it is submitted
			c.jobs[c.next], c.next = job, ""
		}
		text += fmt.Sprintf(" (%s)", job)
	}
	c.lines = append(c.lines, fmt.Sprintf("%v %s", c.net.Elapsed().Round(time.Millisecond), c.words(text)))
}

// words has the names of nodes and jobs in the place of their IDs.
func (c *conversation) words(text string) string {
	for name, id := range c.jobs {
		text = strings.ReplaceAll(text, string(id), name)
	}
	for i, name := range c.names {
		text = strings.ReplaceAll(text, string(c.net.ID(i)), name)
		text = strings.ReplaceAll(text, c.net.ID(i).Short(), name)
	}
	return text
}

// state prints what all nodes have, and all jobs.
func (c *conversation) state() {
	for i, name := range c.names {
		if !c.net.Up(i) {
			c.lines = append(c.lines, name+" is down")
			continue
		}
		used, held := c.Jobs(i).Slots()
		c.lines = append(c.lines, fmt.Sprintf("%s: %d of %d slots used, %d held", name, used, c.slots[i], held))
		for _, id := range c.Jobs(i).Jobs() {
			st, _ := c.Jobs(i).Status(id)
			line := fmt.Sprintf("  %s %s", c.words(string(id)), st.State)
			for _, k := range st.Workers {
				if line += fmt.Sprintf(", %d.%d %s", k.Rank, k.Attempt, k.State); k.Node != "" {
					line += " at " + c.words(string(k.Node))
				}
			}
			if st.Reason != "" {
				line += ": " + c.words(st.Reason)
			}
			c.lines = append(c.lines, line)
		}
	}
}

// arg is the argument at a place, from 0.
func (c *conversation) arg(d *datadriven.TestData, i int) string {
	if i >= len(d.CmdArgs) {
		d.Fatalf(c.t, "too few arguments: see testdata/README.md")
	}
	return d.CmdArgs[i].Key
}

// at is the node that the first argument names, which must be up, or down.
func (c *conversation) at(d *datadriven.TestData, up bool) int {
	i := c.node(c.arg(d, 0))
	if c.net.Up(i) != up {
		d.Fatalf(c.t, "node %s is up: %v", c.names[i], !up)
	}
	return i
}

// says is how the message begins that a command is about; "" = it is about none.
func says(d *datadriven.TestData) string {
	if a, ok := d.Arg("says"); ok {
		return a.Vals[0]
	}
	return ""
}

// party is the node that an argument names; -1 = there is none.
func (c *conversation) party(d *datadriven.TestData, key string) int {
	a, ok := d.Arg(key)
	if !ok {
		return -1
	}
	return c.node(a.Vals[0])
}

func (c *conversation) node(name string) int {
	i := slices.Index(c.names, name)
	if i < 0 {
		c.t.Fatalf("no node is called %q", name)
	}
	return i
}

func (c *conversation) job(name string) jobs.ID {
	id, ok := c.jobs[name]
	if !ok {
		c.t.Fatalf("no job is called %q", name)
	}
	return id
}
