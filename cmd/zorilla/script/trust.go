package script

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"zorilla/internal/reserved"
	"zorilla/transfer"
)

// TrustOption is the option by which a user grants a script all of her rights.
const TrustOption = "trust-script"

// A script may be somebody else's. It may ask the network for what it likes, but has none of its
// user's rights: judges has a function for each option, by its first name, which returns why a value
// needs such a right, or "". nil = no value does.
var judges = map[string]func(s *Script, value string) string{
	"n": nil, "c": nil, "mem": nil, "disk": nil, "max-output": nil, "gpus": nil, "where": nil, "mpi": nil, "share-work": nil,
	"t": nil, "J": nil, "priority": nil, "strategy": nil, "max-rtt": nil, "one-per-node": nil, "spares": nil, "replicas": nil,
	"d": nil, "begin": nil, "deadline": nil, "book-after": nil, "retries": nil,
	"kill-on-bad-exit": nil, "max-fails": nil, "lost-after": nil, "checkpoint-far": nil, "launcher": nil, "signal": nil, "signal-on-change": nil,
	"search": nil, "radius": nil,
	"flood-wait": nil, "flood-factor": nil, "give-up": nil, "a": nil,
	"l": nil, "q": nil, "progress": nil, "json": nil, "parsable": nil, "follow-output": nil,

	"i":         func(s *Script, value string) string { return s.sends(value) },
	"each-line": func(s *Script, value string) string { return s.reads(value) },
	"graph":     func(s *Script, value string) string { return s.reads(value) },
	"stdin":     func(s *Script, value string) string { return s.reads(value) },
	"o":         when(transfer.NamesHidden, "names hidden files"),
	"e":         when(func(value string) bool { return !strings.Contains(value, "=") }, "sends a variable of yours"),
	"net":       when(func(value string) bool { return value != "none" && value != "job" }, "reaches your network"),

	"on-end":    always("runs a command outside of the sandbox"),
	"mount":     always("shows files of yours"),
	"into":      always("says where files are written"),
	"force":     always("replaces files"),
	"key":       always("may name another job"),
	"node":      always("names another node"),
	"state-dir": always("names another node"),
	TrustOption: always("is for you to type"), "print-file": always("is for you to type"),
}

func always(why string) func(*Script, string) string {
	return func(*Script, string) string { return why }
}

func when(is func(value string) bool, why string) func(*Script, string) string {
	return func(_ *Script, value string) string {
		if is(value) {
			return why
		}
		return ""
	}
}

// Judged reports whether there is a judgement of an option; without one no script may have it.
func Judged(option string) bool { _, ok := judges[option]; return ok }

// outside is why a script may not send files of others.
const outside = "sends what is not below the script's or the current directory"

// trusted is why a script may not send files of reserved places.
const trusted = "sends what programs outside of the sandbox trust"

// reads judges the name of a file whose content is sent.
func (s *Script) reads(name string) string {
	if name == "" || name == "-" || name == "none" {
		return ""
	}
	return s.own().sends(name)
}

// sends judges PATH[:NAME] of an input.
func (s *Script) sends(value string) string {
	inputs, err := transfer.ExpandInputs([]string{value})
	if err != nil {
		return "" // nothing is sent, and the submission reports why
	}
	own := s.own()
	for _, in := range inputs {
		if why := own.sends(in.Path); why != "" {
			return why
		}
	}
	return ""
}

// own is what a script may send: files below its own directory, or the current one.
type own struct {
	roots  []string
	home   string // "" = not known
	places *reserved.Places
}

func (s *Script) own() own {
	o := own{roots: []string{reserved.Real("."), filepath.Dir(reserved.Real(s.Path))}, places: reserved.New()}
	if home, err := os.UserHomeDir(); err == nil {
		o.home = reserved.Real(home)
	}
	return o
}

// sends returns why the script may not send a file or a directory; "" = it may.
func (o own) sends(name string) string {
	if _, err := os.Lstat(name); errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	found := o.leaves(name)
	if info, err := os.Stat(name); err != nil || !info.IsDir() || found != "" {
		return found
	}
	err := filepath.WalkDir(reserved.Real(name), func(at string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
		case d.Type()&fs.ModeSymlink != 0: // what it leads to may be sent in its place
			found = o.leaves(at)
		case d.IsDir() && o.places.Why(at) != "":
			found = trusted
		}
		if found != "" {
			return fs.SkipAll
		}
		return err
	})
	if err != nil {
		return "" // it cannot be sent either
	}
	return found
}

// leaves is sends for a path alone, without what is in a directory.
func (o own) leaves(at string) string {
	real, err := filepath.EvalSymlinks(at)
	if err == nil {
		real, err = filepath.Abs(real)
	}
	if err != nil {
		return "sends what cannot be looked at"
	}
	if _, ok := below(o.home, real); ok && o.home != "" {
		return "sends your home directory"
	}
	if o.places.Why(real) != "" {
		return trusted
	}
	for _, root := range o.roots {
		if rest, ok := below(real, root); ok && (rest == "." || !transfer.Hidden(rest)) {
			return ""
		}
	}
	return outside
}

// below returns what leads from a directory to what is in it, or "." to itself.
func below(path, dir string) (rest string, ok bool) {
	rest, err := filepath.Rel(dir, path)
	return rest, err == nil && filepath.IsLocal(rest)
}

// Untrusted returns why a file of somebody else's, at a path, may not give an option a value unless the user
// trusts it; "" = it may.
func Untrusted(path, option, value string) string {
	return (&Script{Path: path}).untrusted(option, value)
}

// UntrustedCommand returns why such a file may not name a command that is sent along; "" = it may, or it is not sent.
func UntrustedCommand(path, command string) string {
	own, err := Read(command)
	if sent := !filepath.IsAbs(command) && strings.Contains(command, "/"); !sent && (own == nil || err != nil) {
		return ""
	}
	return (&Script{Path: path}).own().sends(command)
}
