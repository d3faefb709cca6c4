// Package script reads the options that a job's script has for its own submission, in
// lines that begin with #ZORILLA.
package script

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"zorilla/cmd/zorilla/suggest"
)

const (
	marker = "#ZORILLA"
	// maxHead bounds what is read of a script: its options stand at its beginning.
	maxHead = 64 << 10
)

// Script is a script with options of its own.
type Script struct {
	Path        string
	Executable  bool
	Interpreter []string // of a script that is not executable
	lines       []line
}

// line is what one line says.
type line struct {
	number int
	words  []string
}

// Read returns the script that a path names, or nil if it is none or has no such lines.
// These stand before the first line that is no comment. What keeps it from being read is
// told by who sends it.
func Read(path string) (*Script, error) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return nil, nil
	}
	text := head(path)
	if len(text) == 0 || text[0] != '#' {
		return nil, nil
	}
	s := &Script{Path: path, Executable: info.Mode()&0o111 != 0, Interpreter: []string{"sh"}}
	if err := s.parse(text); err != nil || len(s.lines) == 0 {
		return nil, err
	}
	return s, nil
}

// head returns the beginning of a file, as far as it can be read.
func head(path string) []byte {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	text := make([]byte, 1, 4096)
	if n, _ := f.Read(text); n == 0 || text[0] != '#' { // mostly it is a program
		return nil
	}
	rest, err := io.ReadAll(io.LimitReader(f, maxHead))
	if err != nil {
		return nil
	}
	return append(text, rest...)
}

func (s *Script) parse(text []byte) error {
	number := 0
	for b := range bytes.Lines(text) {
		number++
		switch {
		case bytes.IndexByte(b, 0) < 0:
		case bytes.HasPrefix(b, []byte(marker)):
			return fmt.Errorf("%s, line %d: it has a zero byte, which no option has: tr -d '\\0'", s.Path, number)
		default: // it is no text
			return nil
		}
		raw := strings.TrimSpace(string(b))
		rest, marked := strings.CutPrefix(raw, marker)
		switch {
		case number == 1 && strings.HasPrefix(raw, "#!"):
			if words := strings.Fields(raw[2:]); len(words) > 0 {
				s.Interpreter = words
			}
		case marked && bytes.HasSuffix(b, []byte("\r\n")):
			return fmt.Errorf("%s: its lines end as those of Windows do, and shells take the end for a part of each line: try dos2unix %s", s.Path, s.Path)
		case marked && (rest == "" || strings.ContainsAny(rest[:1], " \t")):
			words, err := split(rest)
			if err != nil {
				return fmt.Errorf("%s, line %d: %w", s.Path, number, err)
			}
			s.lines = append(s.lines, line{number, words})
		case raw != "" && raw[0] != '#':
			return nil
		}
	}
	return nil
}

// Says reports whether one of its lines gives an option this value.
func (s *Script) Says(option, value string) bool {
	return slices.ContainsFunc(s.lines, func(l line) bool {
		for i, word := range l.words {
			name, given, ok := strings.Cut(word, "=")
			if !ok && i+1 < len(l.words) {
				given = l.words[i+1]
			}
			if strings.HasPrefix(word, "-") && strings.TrimLeft(name, "-") == option && given == value {
				return true
			}
		}
		return false
	})
}

// split splits words as a shell does, but for variables and patterns. What follows a # is a
// comment.
func split(text string) (words []string, err error) {
	var word []byte
	var quote byte
	inside := false
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case quote == 0 && (c == ' ' || c == '\t'):
			if inside {
				words = append(words, string(word))
			}
			word, inside = nil, false
		case quote == 0 && c == '#' && !inside:
			return words, nil
		case quote == 0 && (c == '\'' || c == '"'):
			quote, inside = c, true
		case quote != 0 && c == quote:
			quote = 0
		case c == '\\' && quote != '\'' && i+1 < len(text):
			i++
			word, inside = append(word, text[i]), true
		default:
			word, inside = append(word, c), true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("a quotation mark %c is open", quote)
	}
	if inside {
		words = append(words, string(word))
	}
	return words, nil
}

// option is one that was typed: by which name, and its values.
type option struct {
	name   string
	values []string
}

// Merge returns a command line with the options of its script before those that were
// typed, which win: args are the program, a command, and what follows. Other command
// lines are left alone. Options that only other has, which runs scripts too, are left out. An
// option that needs a right of the user's is an error, unless TrustOption was typed.
func Merge(cmd, other *cli.Command, args []string) ([]string, error) {
	typed := map[string]option{}
	trusted := false
	at := 2
	for at < len(args) && strings.HasPrefix(args[at], "-") && args[at] != "-" {
		word := args[at]
		if at++; word == "--" {
			break
		}
		if f, name, value, valued := find(cmd.Flags, word); f != nil {
			o := typed[f.Names()[0]]
			o.name = name
			if o.values = append(o.values, strings.TrimPrefix(value, "=")); valued && at < len(args) {
				o.values[len(o.values)-1] = args[at]
			}
			typed[f.Names()[0]] = o
			trusted = trusted || name == TrustOption && (value == "" || value == "=true")
			if valued {
				at++
			}
		}
	}
	if at >= len(args) {
		return args, nil
	}
	s, err := Read(args[at])
	if s == nil || err != nil {
		return args, err
	}
	options, err := s.options(cmd, other, typed, trusted)
	if err != nil {
		return nil, err
	}
	return slices.Concat(args[:2], options, args[2:]), nil
}

// find returns the option that a word is, its name there, what follows "=" with the sign,
// and whether its value is the next word.
func find(flags []cli.Flag, word string) (f cli.Flag, name, value string, valued bool) {
	name = strings.TrimLeft(word, "-")
	if at := strings.IndexByte(name, '='); at >= 0 {
		name, value = name[:at], name[at:]
	}
	for _, f := range flags {
		if slices.Contains(f.Names(), name) {
			_, isBool := f.(*cli.BoolFlag)
			return f, name, value, !isBool && value == ""
		}
	}
	return nil, name, value, false
}

// options are those of the script which do not yield to what was typed.
func (s *Script) options(cmd, other *cli.Command, typed map[string]option, trusted bool) (options []string, err error) {
	for _, l := range s.lines {
		wrong := func(format string, args ...any) error {
			return fmt.Errorf("%s, line %d: %s", s.Path, l.number, fmt.Sprintf(format, args...))
		}
		for i := 0; i < len(l.words); i++ {
			word := l.words[i]
			if !strings.HasPrefix(word, "-") || strings.Trim(word, "-") == "" {
				return nil, wrong("%q is no option: the command is the script itself", word)
			}
			f, _, value, valued := find(cmd.Flags, word)
			known := f != nil
			if !known {
				var name string
				if f, name, value, valued = find(other.Flags, word); f == nil {
					return nil, wrong("%s", unknown(cmd, name))
				}
			}
			var next []string
			if valued {
				if i++; i == len(l.words) {
					return nil, wrong("option %s needs a value", word)
				}
				next = l.words[i : i+1]
			}
			first := f.Names()[0]
			before, said := typed[first]
			given := strings.TrimPrefix(value, "=")
			if len(next) > 0 {
				given = next[0]
			}
			if !known || said && (!repeatable(f) || slices.Contains(before.values, given)) {
				continue // of what is repeatable, too: a job file may say what its script says
			}
			if why := s.untrusted(first, given); why != "" && !trusted {
				name, _, _ := strings.Cut(word, "=")
				return nil, wrong("%s %s: type --%s before the script if it may", name, why, TrustOption)
			}
			as := before.name
			if !said { // one name for one option: the parser takes no two
				as = first
			}
			options = append(append(options, suggest.Dashes(as)+value), next...)
		}
	}
	return options, nil
}

// untrusted returns why a script may not have an option unless it is trusted; "" = it may.
func (s *Script) untrusted(option, value string) string {
	judge, known := judges[option]
	switch {
	case !known:
		return "may not stand in a script"
	case judge == nil:
		return ""
	}
	return judge(s, value)
}

func repeatable(f cli.Flag) bool { _, ok := f.(*cli.StringSliceFlag); return ok }

func unknown(cmd *cli.Command, name string) string {
	var names []string
	for _, f := range cmd.VisibleFlags() {
		names = append(names, f.Names()...)
	}
	return suggest.UnknownOption(name, names)
}
