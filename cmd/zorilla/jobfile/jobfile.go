// Package jobfile has job files: TOML that says what the options of a submission and its command say,
// and of which groups the job consists, how they are linked, and what makes one choice of nodes better
// than another (package groups), or which tasks its ranks are and what these tell each other (package mapping).
// Options are called as at the command line, by any of their names, so that there is no second list of them.
//
// A job file is read strictly. Its errors are one line, FILE:LINE:COLUMN: what is wrong.
package jobfile

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/urfave/cli/v2"

	"zorilla/cmd/zorilla/config"
	"zorilla/cmd/zorilla/suggest"
	"zorilla/jobs/groups"
	"zorilla/jobs/placement/mapping"
)

// Suffix is what the names of job files end in.
const Suffix = ".toml"

// PrintOption is the option by which a job file is printed instead of a submission.
const PrintOption = "print-file"

// maxFile bounds a job file: a command may be half a megabyte long.
const maxFile = 1 << 20

// Tables and keys of a job file that are no options.
const (
	commandKey = "command"
	groupKey   = "group"
	linkKey    = "link"
	utilityKey = "utility"
	taskKey    = "task"
	edgeKey    = "edge"
)

// OwnKeys are the keys of a job file that are no options.
func OwnKeys() []string { return []string{commandKey, groupKey, linkKey, utilityKey, taskKey, edgeKey} }

// typedOnly are options that are no part of a job, by their first name.
var typedOnly = []string{PrintOption, "trust-script"}

// TypedOnly reports whether an option, by its first name, may stand in no job file.
func TypedOnly(option string) bool { return slices.Contains(typedOnly, option) }

// File is what a job file says.
type File struct {
	Path     string
	Command  []string // and its arguments; none = not said
	Topology groups.Topology
	Graph    *mapping.Listed // of its tasks and edges; nil = it has none, or a typed one has its place

	options []setting
	at      places
	workers bool // the groups, or the tasks, alone say how many there are
}

// setting is an option in a file.
type setting struct {
	flag   cli.Flag
	key    string   // as it is called in the file
	values []string // as they would be typed
	at     []place  // of each value
	typed  bool     // it was typed, too
}

// Is reports whether an argument of a command means a job file.
func Is(arg string) bool { return strings.HasSuffix(arg, Suffix) && len(arg) > len(Suffix) }

// Read reads a job file for commands that have these options.
func Read(path string, flags []cli.Flag) (*File, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, fmt.Errorf("job file %w", plain(err))
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("job file %s: it is no regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("job file %w", plain(err))
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("job file %w", plain(err))
	}
	if len(text) > maxFile {
		return nil, fmt.Errorf("job file %s: more than %d KiB: put what is long into an input file", path, maxFile>>10)
	}
	return Parse(path, text, flags)
}

// plain leaves out of an error what was done with the file.
func plain(err error) error {
	if e := (*os.PathError)(nil); errors.As(err, &e) {
		return fmt.Errorf("%s: %w", e.Path, e.Err)
	}
	return err
}

// Parse reads the text of a job file for commands that have these options.
func Parse(path string, text []byte, flags []cli.Flag) (*File, error) {
	f := &File{Path: path}
	var tables map[string]any
	if err := toml.Unmarshal(text, &tables); err != nil {
		at, text := place{1, 1}, strings.TrimPrefix(err.Error(), "toml: ")
		if e := (*toml.DecodeError)(nil); errors.As(err, &e) {
			at.line, at.column = e.Position()
		}
		return nil, f.wrongAt(at, "%s", text)
	}
	f.at = locate(text)
	for _, key := range f.at.keys(tables) {
		var err error
		switch value := tables[key]; key {
		case commandKey:
			f.Command, err = f.command(value, key)
		case groupKey:
			err = f.eachTable(value, key, f.group)
		case linkKey, taskKey, edgeKey: // they name others
		case utilityKey:
			err = f.utility(value)
		default:
			err = f.option(flags, key, value)
		}
		if err != nil {
			return nil, err
		}
	}
	if value, ok := tables[linkKey]; ok {
		if err := f.eachTable(value, linkKey, f.link); err != nil {
			return nil, err
		}
	}
	if err := f.graph(tables); err != nil {
		return nil, err
	}
	return f, f.check()
}

// option reads an option.
func (f *File) option(flags []cli.Flag, key string, value any) error {
	var flag cli.Flag
	var names []string
	for _, one := range flags {
		if v, ok := one.(cli.VisibleFlag); ok && !v.IsVisible() {
			continue
		}
		names = append(names, config.Names(one)...)
		if flag == nil && slices.Contains(config.Names(one), key) {
			flag = one
		}
	}
	if flag == nil {
		return f.wrongAt(f.at.key(key), "unknown key %s%s", key, meant(key, append(names, OwnKeys()...)))
	}
	if TypedOnly(config.Names(flag)[0]) {
		return f.wrongAt(f.at.key(key), "%s is no part of a job: type it", key)
	}
	for _, before := range f.options {
		if config.Names(before.flag)[0] == config.Names(flag)[0] {
			return f.wrongAt(f.at.key(key), "%s is what stands in line %d as %s", key, f.at.key(before.key).line, before.key)
		}
	}
	s := setting{flag: flag, key: key}
	if table, ok := value.(map[string]any); ok && config.Names(flag)[0] == "e" {
		for _, name := range f.at.keys(table, key) {
			text, err := f.variable(table[name], key, name)
			if err != nil {
				return err
			}
			s.values, s.at = append(s.values, name+"="+text), append(s.at, f.at.value(key, name))
		}
		f.options = append(f.options, s)
		return nil
	}
	var err error
	if s.values, err = config.Values(flag, value); err != nil {
		return f.wrong([]string{key}, "%s: %w", key, err)
	}
	for i := range s.values {
		at := f.at.value(key)
		if _, isList := value.([]any); isList {
			at = f.at.value(key, fmt.Sprint(i))
		}
		s.at = append(s.at, at)
	}
	f.options = append(f.options, s)
	return nil
}

// variable reads the value of a variable of the environment.
func (f *File) variable(value any, path ...string) (string, error) {
	name := path[len(path)-1]
	if name == "" || strings.ContainsAny(name, "=\x00") {
		return "", f.wrongAt(f.at.key(path...), "%q is no name of a variable", name)
	}
	switch v := value.(type) {
	case string:
		return v, nil
	case int64:
		return fmt.Sprint(v), nil
	}
	return "", f.wrong(path, "%s: want text in quotation marks", name)
}

// command reads a command and its arguments.
func (f *File) command(value any, path ...string) ([]string, error) {
	list, err := f.texts(value, path...)
	if err != nil {
		return nil, f.wrong(path, `%s: want a list such as ["./prog", "arg"], or ["sh", "-c", "..."] for a line of a shell`, commandKey)
	}
	if len(list) == 0 || list[0] == "" {
		return nil, f.wrong(path, "%s: it is empty", commandKey)
	}
	return list, nil
}

// texts reads a list of texts.
func (f *File) texts(value any, path ...string) (texts []string, err error) {
	list, ok := value.([]any)
	for _, v := range list {
		text, isText := v.(string)
		texts, ok = append(texts, text), ok && isText
	}
	if !ok {
		return nil, f.wrong(path, `%s: want a list such as ["a", "b"]`, path[len(path)-1])
	}
	return texts, nil
}

// eachTable reads all tables of an array of them.
func (f *File) eachTable(value any, name string, read func(i int, table map[string]any) error) error {
	list, ok := value.([]any)
	if !ok {
		return f.wrongAt(f.at.key(name), "want [[%s]], one for each %s", name, name)
	}
	for i, v := range list {
		table, ok := v.(map[string]any)
		if !ok {
			return f.wrong([]string{name}, "want [[%s]], one for each %s", name, name)
		}
		if err := read(i, table); err != nil {
			return err
		}
	}
	return nil
}

// meant says which key may have been meant, if one may: what it is called here, or nearly.
func meant(key string, keys []string) string {
	here := strings.ToLower(strings.TrimLeft(key, "-"))
	here = cmp.Or(suggest.Options[here], here)
	found := cmp.Or(keyWords[here], here)
	if !slices.Contains(keys, found) {
		found = suggest.Option(key, keys)
	}
	if found == "" {
		return ""
	}
	return fmt.Sprintf(": did you mean %s?", found)
}

// keyWords are keys by what the same is called at the command line.
var keyWords = map[string]string{"np": "n", "c": "slots", "args": commandKey}

// wrong says what is wrong with a value.
func (f *File) wrong(path []string, format string, args ...any) error {
	return f.wrongAt(f.at.value(path...), format, args...)
}

func (f *File) wrongAt(at place, format string, args ...any) error {
	return fmt.Errorf("%s:%d:%d: %w", f.Path, at.line, at.column, fmt.Errorf(format, args...))
}

// sorted are the keys of a table in a fixed order.
func sorted(table map[string]any, less func(a, b string) int) []string {
	return slices.SortedFunc(maps.Keys(table), func(a, b string) int { return cmp.Or(less(a, b), cmp.Compare(a, b)) })
}
