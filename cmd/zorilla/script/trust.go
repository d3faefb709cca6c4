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

// TrustOption is what a user types who lets a script have all that she may have.
const TrustOption = "trust-script"

// A script may be somebody else's. It may ask the network for what it likes, but has no right of
// its user's: judges says of each option, by its first name, why a value of it counts as a wish of
// hers alone. nil = none does.
var judges = map[string]func(s *Script, value string) string{
	"n": nil, "c": nil, "mem": nil, "disk": nil, "max-output": nil, "gpus": nil, "where": nil, "mpi": nil, "share-work": nil,
	"t": nil, "J": nil, "priority": nil, "strategy": nil, "max-rtt": nil, "replicas": nil, "d": nil, "begin": nil, "retries": nil,
	"kill-on-bad-exit": nil, "max-fails": nil, "launcher": nil, "signal-on-change": nil, "search": nil, "radius": nil,
	"flood-wait": nil, "flood-factor": nil, "give-up": nil, "a": nil,
	"l": nil, "q": nil, "progress": nil, "json": nil, "parsable": nil, "follow-output": nil,

	"i":         func(s *Script, value string) string { return s.sends(value) },
	"each-line": func(s *Script, value string) string { return s.reads(value) },
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
	TrustOption: always("is for you to type"),
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

// Judged reports whether it is known what an option of a script means for its user.
func Judged(option string) bool { _, ok := judges[option]; return ok }

// outside is what is said of files that are none of a script's.
const outside = "sends what is not below the script's or the current directory"

// reads judges the name of a file whose content is sent.
func (s *Script) reads(name string) string {
	if name == "" || name == "-" || name == "none" {
		return ""
	}
	return s.judge(name)
}

// sends judges PATH[:NAME] of an input.
func (s *Script) sends(value string) string {
	inputs, err := transfer.ExpandInputs([]string{value})
	if err != nil {
		return "" // nothing is sent, and the reason told
	}
	for _, in := range inputs {
		if why := s.judge(in.Path); why != "" {
			return why
		}
	}
	return ""
}

// judge returns why a file or a directory is none that the script may send.
func (s *Script) judge(name string) string {
	if _, err := os.Lstat(name); errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	homes, roots := []string{}, []string{reserved.Real("."), filepath.Dir(reserved.Real(s.Path))}
	if home, err := os.UserHomeDir(); err == nil {
		homes = append(homes, reserved.Real(home))
	}
	places := reserved.New()
	why := func(at string) string {
		real, err := filepath.EvalSymlinks(at)
		if err == nil {
			real, err = filepath.Abs(real)
		}
		if err != nil {
			return "sends what cannot be looked at"
		}
		for _, home := range homes {
			if _, ok := below(home, real); ok {
				return "sends your home directory"
			}
		}
		if places.Why(real) != "" {
			return "sends what programs outside of the sandbox trust"
		}
		for _, root := range roots {
			if rest, ok := below(real, root); ok && (rest == "." || !transfer.Hidden(rest)) {
				return ""
			}
		}
		return outside
	}
	found := why(name)
	if info, err := os.Stat(name); err != nil || !info.IsDir() || found != "" {
		return found
	}
	top, err := filepath.EvalSymlinks(name)
	if err != nil {
		return outside
	}
	err = filepath.WalkDir(top, func(at string, d fs.DirEntry, err error) error {
		if err == nil && d.Type()&fs.ModeSymlink != 0 { // what it leads to may be sent in its place
			found = why(at)
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

// below returns what leads from a directory to what is in it, or "." to itself.
func below(path, dir string) (rest string, ok bool) {
	rest, err := filepath.Rel(dir, path)
	return rest, err == nil && filepath.IsLocal(rest)
}
