// Package completion lists for shells how a command line may go on.
package completion

import (
	_ "embed"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/urfave/cli/v2"

	"zorilla/cmd/zorilla/columns"
	"zorilla/cmd/zorilla/jobfile"
	"zorilla/cmd/zorilla/selector"
	"zorilla/cmd/zorilla/suggest"
	"zorilla/jobs"
	"zorilla/jobs/placement"
	"zorilla/node/api"
)

// Command is the hidden command that the scripts call with the words of a line, the
// last of which is to be completed.
const Command = "__complete"

var (
	//go:embed zorilla.bash
	bash string
	//go:embed zorilla.zsh
	zsh string
	//go:embed zorilla.fish
	fish string
)

// Scripts are what shells read, by shell.
var Scripts = map[string]string{"bash": bash, "zsh": zsh, "fish": fish}

// Candidate is a word that may stand there, and what it is.
type Candidate struct{ Word, Help string }

// Network is what is asked of a node; an error is nothing.
type Network interface {
	Jobs() []jobs.Summary
	Nodes() []api.NodeInfo
}

// line is a command line as far as it was typed.
type line struct {
	app  *cli.App
	net  Network
	cmd  *cli.Command
	args []string // of the command, but for options
	last string   // the word that is completed
}

// Of returns how a line may go on. Where it is none, files are meant.
func Of(app *cli.App, net Network, words []string) []Candidate {
	if len(words) == 0 {
		return nil
	}
	l := &line{app: app, net: net, last: words[len(words)-1]}
	words = words[:len(words)-1]
	if len(words) == 0 {
		return l.matching(l.commands())
	}
	if l.cmd = app.Command(words[0]); l.cmd == nil {
		if words[0] == "help" {
			return l.matching(l.commands())
		}
		return nil
	}
	for i := 1; i < len(words); i++ {
		word := words[i]
		f := option(l.cmd, word)
		switch {
		case word == "--" || !strings.HasPrefix(word, "-") || word == "-":
			if word == "--" || TakesProgram[l.cmd.Name] && !l.ofFile(word) {
				if l.args = append(l.args, words[i:]...); l.cmd.Name != "exec" || i+1 < len(words) {
					return nil // what comes is somebody else's
				}
			} else {
				l.args = append(l.args, word)
			}
		case f != nil && !strings.Contains(word, "=") && !isBool(f):
			if i++; i == len(words) {
				return l.matching(l.values(f))
			}
		}
	}
	if name, value, found := strings.Cut(l.last, "="); found && strings.HasPrefix(name, "-") {
		if f := option(l.cmd, name); f != nil {
			l.last = value
			list := l.matching(l.values(f))
			for i := range list {
				list[i].Word = name + "=" + list[i].Word
			}
			return list
		}
	}
	if strings.HasPrefix(l.last, "-") {
		return l.matching(l.options())
	}
	return l.matching(l.arguments())
}

// ofFile reports whether a word is the job file of a command, whose options may follow it.
func (l *line) ofFile(word string) bool {
	return (l.cmd.Name == "run" || l.cmd.Name == "submit") && jobfile.Is(word)
}

// jobFiles are the job files that a word begins, and the directories.
func (l *line) jobFiles() (list []Candidate) {
	if strings.ContainsAny(l.last, `*?[\~`) {
		return nil
	}
	found, _ := filepath.Glob(l.last + "*") // the pattern is right
	for _, name := range found {
		switch info, err := os.Stat(name); {
		case err != nil || strings.IndexFunc(strings.ReplaceAll(name, "/", ""), special) >= 0:
		case info.IsDir():
			list = append(list, Candidate{name + "/", ""})
		case jobfile.Is(name):
			list = append(list, Candidate{name, ""})
		}
	}
	return list
}

// TakesProgram are commands after whose options somebody else's command stands.
var TakesProgram = map[string]bool{"run": true, "submit": true, "dev": true, "alloc": true, "rsh": true, "exec": true}

func (l *line) matching(list []Candidate) []Candidate {
	return slices.DeleteFunc(list, func(c Candidate) bool { return !strings.HasPrefix(c.Word, l.last) })
}

func (l *line) commands() (list []Candidate) {
	for _, c := range l.app.Commands {
		if !c.Hidden {
			list = append(list, Candidate{c.Name, c.Usage})
		}
	}
	return list
}

func isBool(f cli.Flag) bool { _, ok := f.(*cli.BoolFlag); return ok }

// option returns the option of a command that a word is, or nil.
func option(cmd *cli.Command, word string) cli.Flag {
	name, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
	for _, f := range cmd.Flags {
		if slices.Contains(f.Names(), name) {
			return f
		}
	}
	return nil
}

func (l *line) options() (list []Candidate) {
	for _, f := range l.cmd.VisibleFlags() {
		help := ""
		if d, ok := f.(cli.DocGenerationFlag); ok {
			help = strings.ReplaceAll(d.GetUsage(), "`", "")
		}
		for _, name := range f.Names() {
			list = append(list, Candidate{suggest.Dashes(name), help})
		}
	}
	return list
}

// fixed are the values of options that have only a few, by name.
var fixed = map[string][]string{
	"net": {"host", "job", "none"}, "search": {"adaptive", "paper"},
	"launcher": {"mpirun", "mpiexec", "parallel"}, "progress": {"bar", "json", "none"},
	"signal": {"HUP@", "INT@", "TERM@", "USR1@", "USR2@"}, "signal-on-change": {"HUP", "INT", "USR1", "USR2", "URG", "WINCH"}, "give-up": {"never"},
	"d": {"afterok:", "afterany:", "afternotok:"}, "require-sandbox": {"none", "basic", "full"}, "mounts": {"own", "own:rw", "exposed"},
	"where": {"arch", "bandwidth", "clock", "disk", "enforces", "gpus", "id", "mem", "name", "os", "power", "site", "slots", "version"},
}

// values are those that an option may have, as far as they can be told.
func (l *line) values(f cli.Flag) (list []Candidate) {
	name := f.Names()[0]
	for _, v := range fixed[name] {
		list = append(list, Candidate{v, ""})
	}
	switch {
	case name == "strategy":
		for _, s := range placement.Strategies() {
			list = append(list, Candidate{string(s), ""})
		}
	case name == "state" && l.cmd.Name == "ps":
		for _, s := range selector.StateWords() {
			list = append(list, Candidate{s, ""})
		}
	case name == "name" && (l.cmd.Name == "ps" || l.cmd.Name == "cancel"):
		for _, st := range l.net.Jobs() {
			if st.Name != "" {
				list = append(list, Candidate{st.Name, string(st.State)})
			}
		}
	case name == "where":
		for _, n := range l.net.Nodes() {
			for key, value := range n.Labels {
				list = append(list, Candidate{"labels." + key, value})
			}
		}
	case name == "d":
		kind, _, found := strings.Cut(l.last[strings.LastIndexByte(l.last, ',')+1:], ":")
		if !found {
			return list
		}
		lead := l.last[:strings.LastIndexByte(l.last, ',')+1] + kind + ":"
		list = nil
		for _, c := range l.jobs(func(jobs.Summary) bool { return true }) {
			list = append(list, Candidate{lead + c.Word, c.Help})
		}
	}
	return unique(list)
}

// arguments are those of a command.
func (l *line) arguments() []Candidate {
	var which func(jobs.Summary) bool
	switch l.cmd.Name {
	case "move":
		if len(l.args) > 0 {
			return unique(l.nodes())
		}
		which = func(st jobs.Summary) bool { return !st.State.Final() }
	case "cancel", "exec", "resize":
		which = func(st jobs.Summary) bool { return !st.State.Final() }
	case "rm", "rerun":
		which = func(st jobs.Summary) bool { return st.State.Final() }
	case "status", "logs", "wait", "get", "ls", "explain", "tasks", "attach":
		which = func(jobs.Summary) bool { return true }
	case "check":
		if len(l.args) == 0 {
			return l.jobFiles()
		}
	case "rtt":
		return unique(l.nodes())
	case "man", "config":
		return l.commands()
	case "completion":
		return []Candidate{{"bash", ""}, {"fish", ""}, {"zsh", ""}}
	}
	several := l.cmd.Name == "cancel" || l.cmd.Name == "rm" || l.cmd.Name == "wait"
	if which == nil || len(l.args) > 0 && !several {
		return nil
	}
	return unique(l.jobs(which))
}

// maxJobs bounds the jobs that are offered.
const maxJobs = 100

func (l *line) jobs(which func(jobs.Summary) bool) (list []Candidate) {
	var found []jobs.Summary
	for _, st := range l.net.Jobs() {
		if which(st) && len(found) < maxJobs {
			found = append(found, st)
		}
	}
	for i, id := range jobs.DistinctOf(found, func(st jobs.Summary) jobs.ID { return st.ID }) {
		st := found[i]
		list = append(list, Candidate{id, strings.TrimSpace(string(st.State) + " " + columns.Title(st.Name, st.Args))})
	}
	for _, st := range found {
		if st.Name != "" && !strings.ContainsAny(st.Name, ":,") {
			list = append(list, Candidate{st.Name, string(st.State)})
		}
	}
	return append(list, Candidate{"last", "the job submitted last"})
}

func (l *line) nodes() (list []Candidate) {
	for _, n := range l.net.Nodes() {
		list = append(list, Candidate{n.ID.Short(), n.Name})
		if n.Name != "" {
			list = append(list, Candidate{n.Name, n.Site})
		}
	}
	return append(list, Candidate{"self", "the node itself"})
}

// unique leaves one of each word, and those out that mean something to a shell: others
// choose the names of their nodes and jobs.
func unique(list []Candidate) (out []Candidate) {
	seen := map[string]bool{}
	for _, c := range list {
		if !seen[c.Word] && c.Word != "" && strings.IndexFunc(c.Word, special) < 0 {
			seen[c.Word] = true
			out = append(out, c)
		}
	}
	return out
}

func special(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_.@:+,%", r)
}

// Address is what a line says of the node that its command is about.
func Address(words []string) (node, state string) {
	for i, word := range words {
		name, value, found := strings.Cut(word, "=")
		if !found && i+1 < len(words) {
			value = words[i+1]
		}
		switch name {
		case "--":
			return node, state
		case "--node":
			node = value
		case "--state-dir":
			state = value
		}
	}
	return node, state
}
