package web

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"zorilla/internal/units"
	"zorilla/jobs"
	"zorilla/jobs/described"
	"zorilla/transfer"
)

const (
	maxVariables = 200
	maxPatterns  = 50
)

// jobMore is what a job's page tells on demand: what to type, its files, what it was given.
type jobMore struct {
	Log         string     `json:"-"` // where its output can be saved from
	Commands    []typed    `json:"commands"`
	Outputs     filesView  `json:"outputs"`
	Inputs      filesView  `json:"inputs"`
	Limits      []counter  `json:"limits"`
	Env         []variable `json:"env"`
	Again       bool       `json:"again"` // it can be submitted again
	AgainFailed bool       `json:"againFailed"`
	EnvSum      string     `json:"envSum"`
}

// typed is a command to copy.
type typed struct {
	Key  string `json:"key"` // what it does
	Text string `json:"text"`
}

// variable is one of the environment that a job was given.
type variable struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Hidden bool   `json:"hidden"` // the value is not told
}

func (s *views) more(ctx context.Context, st *jobs.Status) jobMore {
	m := jobMore{Log: "/jobs/" + label(string(st.ID), 64) + "/log", Commands: commands(st),
		Outputs: s.outputs(ctx, st), Inputs: s.inputs(ctx, st), Limits: limits(&st.Spec)}
	m.Again = st.State.Final() && st.Forgotten.IsZero()
	m.AgainFailed = m.Again && st.Array != nil && st.Array.Failed > 0
	m.Env = environment(st.Spec.Env)
	m.EnvSum = "Environment: " + plural(len(st.Spec.Env), "variable", "variables")
	return m
}

// inputs lists the files that each worker finds.
func (s *views) inputs(ctx context.Context, st *jobs.Status) filesView {
	v := filesView{None: st.Spec.Inputs.IsZero()}
	if v.None {
		return v
	}
	ctx, cancel := context.WithTimeout(ctx, listWait)
	defer cancel()
	get := chunks(ctx, s.service, st.ID)
	t, err := s.trees.get(st.Spec.Inputs, func() (transfer.Manifest, error) { return transfer.LoadManifest(get, st.Spec.Inputs) })
	if err != nil {
		v.Note = "The list of inputs is not kept any more, or cannot be read at the moment."
		return v
	}
	v.Sum = fmt.Sprintf("%s, %s", plural(t.count, "file", "files"), units.Bytes(t.bytes))
	for _, e := range t.files {
		row := fileRow{Key: strconv.Itoa(len(v.Rows)), Name: label(e.Path, textLimit), Size: units.Bytes(e.Size)}
		if e.Link != "" {
			row.Size = "→ " + label(e.Link, nameLimit)
		}
		v.Rows = append(v.Rows, row)
	}
	if more := t.count - len(v.Rows); more > 0 {
		v.Note = plural(more, "more file is", "more files are") + " not shown."
	}
	return v
}

// commands are what can be done with a job on the command line as it is now.
func commands(st *jobs.Status) (list []typed) {
	id := label(st.ID.Short(), nameLimit)
	add := func(what, text string) { list = append(list, typed{what, "zorilla " + text}) }
	kept := st.Forgotten.IsZero()
	if !st.State.Final() {
		add("Follow its output", "logs -f "+id)
		if len(st.Spec.Outputs) > 0 {
			add("Fetch the files made so far", "get --now "+id)
		}
		add("Why it is where it is", "explain "+id)
		add("End it", "cancel "+id)
		return list
	}
	if kept {
		add("All of its output", "logs "+id)
		if n := len(st.Earlier); n > 0 {
			last := strconv.Itoa(st.Earlier[n-1])
			add("Output of attempt "+last, "logs --attempt "+last+" "+id)
		}
		if st.HasFiles() {
			add("Fetch its files", "get "+id)
		}
		add("Run it again", "rerun "+id)
		if st.Array != nil && st.Array.Failed > 0 {
			add("Run its failed tasks again", "rerun --failed "+id)
		}
	}
	add("Why it ended so", "explain "+id)
	return list
}

// spares reports which nodes keep room for ranks that may be lost, if the job wants any.
func spares(st *jobs.Status) (list []counter) {
	if text := described.Spares(st); text != "" {
		list = append(list, counter{"Spares", label(text, textLimit)})
	}
	return list
}

// limits reports what was asked for beside the facts that everybody wants to see.
func limits(s *jobs.Spec) (list []counter) {
	add := func(key, value string) {
		if value != "" && value != "0" {
			list = append(list, counter{key, value})
		}
	}
	add("GPUs each", strconv.Itoa(s.GPUs))
	if s.Disk > 0 {
		add("Disk each", units.Bytes(s.Disk))
	}
	add("Nodes where", label(s.Where, textLimit))
	add("Tries more", strconv.Itoa(s.Retries))
	add("Failures at most", strconv.Itoa(s.MaxFails))
	if s.CheckpointFar {
		add("Checkpoints are kept", "in two clusters")
	}
	if sig, notice := s.Notice(); sig > 0 {
		add("Notice of its end", jobs.SignalName(sig)+", "+span(notice))
	}
	if s.LostAfter > 0 {
		add("A silent node is lost after", span(time.Duration(s.LostAfter)))
	}
	if k := s.KillOnBadExit; k != nil {
		add("One failure ends all", map[bool]string{true: "yes", false: "no"}[*k])
	}
	var patterns []string
	for _, g := range s.Outputs[:min(len(s.Outputs), maxPatterns)] {
		patterns = append(patterns, label(g, nameLimit))
	}
	add("Output files", strings.Join(patterns, ", "))
	var after []string
	for _, d := range s.After[:min(len(s.After), maxPatterns)] {
		after = append(after, label(string(d.Kind), 20)+" "+label(d.Job.Short(), nameLimit))
	}
	add("Begins", strings.Join(after, ", "))
	if s.Search.Wait > 0 {
		add("Asks again after", span(time.Duration(s.Search.Wait)))
	}
	return list
}

// times lists when a job is to begin and end.
func times(st *jobs.Status) (list []counter) {
	add := func(name string, at time.Time) {
		if !at.IsZero() {
			list = append(list, counter{name, at.UTC().Format("2006-01-02 15:04:05 MST")})
		}
	}
	add("Begins at", st.Spec.Search.Begin)
	add("Deadline", st.Spec.Search.Deadline)
	if p := st.Promised; p != nil {
		add("Start promised for", p.At)
	}
	return list
}

// secretName fits names of variables whose values are nobody's business, secretValue values
// that are keys, or addresses with a password, whatever their name. They are made when they are
// needed first: else each command of the program would wait for them.
var (
	secretName = lazily(`(?i)(secret|token|passw|passphrase|pwd$|cred|auth|private|api_?key|_key$|^key$|keys?$` +
		`|cookie|session|signature|dsn$|license|jwt|bearer)`)
	secretValue = lazily(`(?i)(-----BEGIN|://[^/@\s]*:[^/@\s]*@|^gh[a-z]_|^sk-|^AKIA|^xox[a-z]-|^eyJ|bearer )`)
)

func lazily(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}

// environment lists variables by name. The values of those that look secret never leave the
// node.
func environment(env map[string]string) (list []variable) {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if len(list) == maxVariables {
			break
		}
		v := variable{Key: label(name, nameLimit), Value: label(env[name], textLimit)}
		if secretName().MatchString(name) || secretValue().MatchString(env[name]) {
			v.Hidden, v.Value = true, "hidden"
		}
		list = append(list, v)
	}
	return list
}

// workersOf is how many workers a job wants.
func workersOf(s *jobs.Spec) string {
	switch {
	case len(s.Groups) > 0 && s.Min != s.Max:
		return fmt.Sprintf("%d to %d, in groups", s.Min, s.Max)
	case len(s.Groups) > 0:
		return fmt.Sprintf("%d, in groups", s.Min)
	case s.FixedSize():
		return fmt.Sprintf("%d, all or nothing", s.Min)
	}
	return fmt.Sprintf("%d to %d, as they come", s.Min, s.Max)
}

// groupFacts are those of a job's groups and links.
func groupFacts(st *jobs.Status) (list []counter) {
	for _, f := range described.Groups(st) {
		list = append(list, counter{label(strings.ToUpper(f.Key[:1])+f.Key[1:], nameLimit), label(f.Value, textLimit)})
	}
	return list
}
