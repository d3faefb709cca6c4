package jobfile

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"zorilla/internal/codec"
	"zorilla/internal/units"
	"zorilla/jobs/groups"
)

// reader reads the value of a key; text is the value if that is a number or text, else "".
type reader func(path []string, value any, text string) error

// ranges are the keys of a group that are ranges, with the kind of each.
var ranges = []struct {
	key  string
	kind quantity
	of   func(*groups.Group) *groups.Range
}{
	{"slots", number, func(g *groups.Group) *groups.Range { return &g.Slots }},
	{"mem", size, func(g *groups.Group) *groups.Range { return &g.Memory }},
	{"disk", size, func(g *groups.Group) *groups.Range { return &g.Disk }},
	{"gpus", number, func(g *groups.Group) *groups.Range { return &g.GPUs }},
	{"clock", clock, func(g *groups.Group) *groups.Range { return &g.Clock }},
	{"power", number, func(g *groups.Group) *groups.Range { return &g.Power }},
}

// group reads a table of a group.
func (f *File) group(i int, table map[string]any) error {
	g := groups.Group{}
	at := []string{groupKey, strconv.Itoa(i)}
	keys := f.groupKeys(&g)
	if err := f.table(at, table, keys); err != nil {
		return err
	}
	switch { // what is missing
	case g.Name == "":
		return f.wrong(at, "the group has no name")
	case groups.CheckName(g.Name) != "":
		return f.wrong(append(at, "name"), "group %.40q: %s", g.Name, groups.CheckName(g.Name))
	case f.Topology.Index(g.Name) >= 0:
		return f.wrong(append(at, "name"), "two groups are called %s", g.Name)
	case g.Min == 0:
		return f.wrong(at, "group %s: n is missing, the number of its workers", g.Name)
	}
	f.Topology.Groups = append(f.Topology.Groups, g)
	return nil
}

// groupKeys are the keys of a group.
func (f *File) groupKeys(g *groups.Group) map[string]reader {
	keys := map[string]reader{
		"name": f.text(&g.Name), "where": f.text(&g.Where), "restart": f.text(&g.Restart), "homogeneous": f.text(&g.Homogeneous),
		"command": func(path []string, value any, _ string) (err error) {
			g.Args, err = f.command(value, path...)
			return err
		},
		"env": func(path []string, value any, _ string) error { return f.groupEnv(path, value, g) },
		"n": func(path []string, _ any, text string) (err error) {
			if g.Min, g.Max, err = units.ParseRange(text); err != nil {
				return f.badly(path, text, err)
			}
			return nil
		},
		"unsplit":  func(path []string, value any, text string) error { return f.unsplit(path, value, text, g) },
		"clusters": func(path []string, _ any, text string) error { return f.clusters(path, text, g) },
	}
	for _, r := range ranges {
		keys[r.key] = func(path []string, _ any, text string) (err error) {
			if *r.of(g), err = r.kind.readRange(text); err != nil {
				return f.badly(path, text, err)
			}
			return nil
		}
	}
	return keys
}

// table reads a table that has these keys and no others.
func (f *File) table(at []string, table map[string]any, keys map[string]reader) error {
	for _, key := range f.at.keys(table, at...) {
		path := append(at[:len(at):len(at)], key)
		read, ok := keys[key]
		if !ok {
			return f.wrongAt(f.at.key(path...), "unknown key %s%s", key, meant(key, names(keys)))
		}
		text := ""
		switch v := table[key].(type) {
		case string:
			text = v
		case int64:
			text = strconv.FormatInt(v, 10)
		}
		if _, isList := table[key].([]any); isList && key != commandKey && key != "groups" && key != "between" {
			return f.wrong(path, "%s: want one value, not a list", key)
		}
		if err := read(path, table[key], text); err != nil {
			return err
		}
	}
	return nil
}

func names(keys map[string]reader) (list []string) {
	for key := range keys {
		list = append(list, key)
	}
	slices.Sort(list)
	return list
}

// text reads a text that is not empty.
func (f *File) text(to *string) reader {
	return func(path []string, value any, _ string) error {
		key := path[len(path)-1]
		text, ok := value.(string)
		switch {
		case !ok:
			return f.wrong(path, `%s: want text in quotation marks, as in "text"`, key)
		case text == "":
			return f.wrong(path, "%s: it is empty: leave it out", key)
		}
		*to = text
		return nil
	}
}

// groupEnv reads the environment of a group.
func (f *File) groupEnv(path []string, value any, g *groups.Group) error {
	table, ok := value.(map[string]any)
	if !ok {
		return f.wrong(path, `env: want a table, as in env = {NAME = "value"}`)
	}
	g.Env = map[string]string{}
	for _, name := range f.at.keys(table, path...) {
		text, err := f.variable(table[name], append(path[:len(path):len(path)], name)...)
		if err != nil {
			return err
		}
		g.Env[name] = text
	}
	if len(g.Env) == 0 {
		g.Env = nil
	}
	return nil
}

const preferWord = "prefer "

// badly says what is wrong with the value of a key, whose text is "" if it is neither text nor a whole number.
func (f *File) badly(path []string, text string, err error) error {
	return f.wrong(path, "%s: %w", strings.TrimSpace(path[len(path)-1]+" "+text), err)
}

// unsplit reads whether a group is to be in one cluster.
func (f *File) unsplit(path []string, value any, text string, g *groups.Group) (err error) {
	yes, isBool := value.(bool)
	span, prefers := strings.CutPrefix(text, preferWord)
	switch {
	case isBool && !yes:
		return nil
	case !isBool && !prefers:
		return f.wrong(path, `unsplit: want true, or "prefer 10m": in one cluster if there is room within that time`)
	case g.Clusters != 0:
		return f.wrong(path, "unsplit is clusters = 1: give one of them")
	}
	g.Clusters = 1
	if prefers {
		return f.prefer(path, span, g)
	}
	return nil
}

var errClusters = errors.New(`want how many at most, such as 2, or "2 prefer 10m": so many if there is room within that time`)

// clusters reads in how many clusters a group may be.
func (f *File) clusters(path []string, text string, g *groups.Group) error {
	if g.Clusters != 0 {
		return f.wrong(path, "unsplit is clusters = 1: give one of them")
	}
	count, span, prefers := strings.Cut(text, " "+preferWord)
	n, err := strconv.ParseInt(count, 10, 32)
	if err != nil || n < 1 {
		return f.badly(path, text, errClusters)
	}
	g.Clusters = int(n)
	if prefers {
		return f.prefer(path, span, g)
	}
	return nil
}

func (f *File) prefer(path []string, text string, g *groups.Group) error {
	d, err := units.ParseSpan(text)
	if err != nil {
		return f.wrong(path, "%s%s: %w", preferWord, text, err)
	}
	g.Prefer = codec.Duration(d)
	return nil
}

// link reads a table of a link.
func (f *File) link(i int, table map[string]any) error {
	l := groups.Link{}
	at := []string{linkKey, strconv.Itoa(i)}
	err := f.table(at, table, map[string]reader{
		"name": f.text(&l.Name),
		"groups": func(path []string, value any, _ string) (err error) {
			if l.Groups, err = f.texts(value, path...); err != nil {
				return err
			}
			for n, name := range l.Groups {
				switch at := append(path, strconv.Itoa(n)); {
				case f.Topology.Index(name) < 0:
					return f.wrong(at, "there is no group %.40q%s", name, f.meantGroup(name))
				case slices.Contains(l.Groups[:n], name):
					return f.wrong(at, "group %s is named twice", name)
				}
			}
			return nil
		},
		"rtt": func(path []string, _ any, text string) (err error) {
			if l.MinRTT, l.MaxRTT, err = readRTT(text); err != nil {
				return f.badly(path, text, err)
			}
			return nil
		},
		"bandwidth": func(path []string, _ any, text string) (err error) {
			if l.Bandwidth, err = bandwidth.readRange(text); err != nil {
				return f.badly(path, text, err)
			}
			return nil
		},
	})
	switch {
	case err != nil:
		return err
	case l.Name == "":
		return f.wrong(at, "the link has no name")
	case groups.CheckName(l.Name) != "":
		return f.wrong(append(at, "name"), "link %.40q: %s", l.Name, groups.CheckName(l.Name))
	case slices.ContainsFunc(f.Topology.Links, func(m groups.Link) bool { return m.Name == l.Name }):
		return f.wrong(append(at, "name"), "two links are called %s", l.Name)
	case len(l.Groups) == 0:
		return f.wrong(at, "link %s: groups is missing, a list of their names", l.Name)
	}
	f.Topology.Links = append(f.Topology.Links, l)
	return nil
}

// meantGroup says which group may have been meant.
func (f *File) meantGroup(name string) string {
	var all []string
	for _, g := range f.Topology.Groups {
		all = append(all, g.Name)
	}
	return meant(name, all)
}

// utility reads the table of weights.
func (f *File) utility(value any) error {
	table, ok := value.(map[string]any)
	if !ok {
		return f.wrong([]string{utilityKey}, "want [%s], with weights below it", utilityKey)
	}
	weight := func(to *float64) reader {
		return func(path []string, value any, _ string) error {
			switch v := value.(type) {
			case int64:
				*to = float64(v)
			case float64:
				*to = v
			default:
				return f.wrong(path, "%s: want a weight, such as 1 or 0.1", path[len(path)-1])
			}
			if !(*to >= 0 && *to <= 1e6) {
				return f.wrong(path, "%s %v: want 0 to 1000000", path[len(path)-1], *to)
			}
			return nil
		}
	}
	return f.table([]string{utilityKey}, table, map[string]reader{
		"satisfaction": weight(&f.Topology.Utility.Satisfaction), "utilisation": weight(&f.Topology.Utility.Utilisation),
	})
}

// check says what is wrong with the groups and links together, at the first that is.
func (f *File) check() error {
	all := f.Topology
	for n := range all.Groups {
		if text := (&groups.Topology{Groups: all.Groups[:n+1]}).Check(); text != "" {
			return f.blamed([]string{groupKey, strconv.Itoa(n)}, text)
		}
	}
	for n := range all.Links {
		if text := (&groups.Topology{Groups: all.Groups, Links: all.Links[:n+1]}).Check(); text != "" {
			return f.blamed([]string{linkKey, strconv.Itoa(n)}, text)
		}
	}
	if text := all.Check(); text != "" {
		return f.blamed([]string{utilityKey}, text)
	}
	return nil
}

// blamed says what is wrong with a table, where the key that the text begins with stands.
func (f *File) blamed(table []string, text string) error {
	_, rest, _ := strings.Cut(text, ": ")
	key, _, _ := strings.Cut(strings.TrimRight(strings.Fields(rest + " .")[0], ":"), " ")
	keys := []string{key}
	if key == strings.TrimSpace(preferWord) { // a part of these
		keys = []string{"unsplit", "clusters"}
	}
	for _, key := range keys {
		path := append(table[:len(table):len(table)], key)
		if _, ok := f.at[name(path)]; ok {
			return f.wrong(path, "%s", text)
		}
	}
	return f.wrongAt(f.at.key(table...), "%s", text)
}

// Warnings are what may not be meant: bounds that keep workers from being near to each other.
func (f *File) Warnings() (list []string) {
	for i, l := range f.Topology.Links {
		if l.MinRTT > 0 {
			at := f.at.value(linkKey, strconv.Itoa(i), "rtt")
			list = append(list, fmt.Sprintf("%s:%d:%d: link %s: rtt %s forbids nodes that are nearer than %v, and two workers at one node",
				f.Path, at.line, at.column, l.Name, writeRTT(l.MinRTT, l.MaxRTT), time.Duration(l.MinRTT)))
		}
	}
	return list
}
