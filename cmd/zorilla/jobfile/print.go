package jobfile

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/urfave/cli/v2"

	"zorilla/cmd/zorilla/config"
	"zorilla/internal/codec"
	"zorilla/jobs/groups"
	"zorilla/jobs/placement/mapping"
)

// Print returns a job file that says what a command line does: the options that are set in it, and the command.
func Print(c *cli.Context, command []string, t *groups.Topology, graph *mapping.Listed) string {
	var b, env strings.Builder
	for _, f := range c.Command.Flags {
		first := config.Names(f)[0]
		if v, ok := f.(cli.VisibleFlag); !c.IsSet(first) || ok && !v.IsVisible() || TypedOnly(first) || first == "node" || first == "state-dir" {
			continue
		}
		if first == "n" && (len(t.Groups) > 0 || graph != nil) || first == "graph" && graph != nil { // they say it
			continue
		}
		if table := variables(c.StringSlice(first)); first == "e" && table != nil {
			printEnv(&env, "env", table)
			continue
		}
		fmt.Fprintf(&b, "%s = %s\n", keyOf(f), value(c, f))
	}
	if len(command) > 0 {
		fmt.Fprintf(&b, "%s = %s\n", commandKey, list(command))
	}
	return b.String() + env.String() + Topology(t) + Graph(graph)
}

// keyOf is the name of an option that says most; np is called n.
func keyOf(f cli.Flag) string {
	if first := config.Names(f)[0]; first == "n" {
		return first
	}
	return config.Longest(f)
}

// value is what an option has, as TOML.
func value(c *cli.Context, f cli.Flag) string {
	first := config.Names(f)[0]
	switch f.(type) {
	case *cli.BoolFlag:
		return strconv.FormatBool(c.Bool(first))
	case *cli.IntFlag:
		return strconv.Itoa(c.Int(first))
	case *cli.Float64Flag:
		text := strconv.FormatFloat(c.Float64(first), 'f', -1, 64)
		if !strings.Contains(text, ".") {
			text += ".0"
		}
		return text
	case *cli.StringSliceFlag:
		return list(c.StringSlice(first))
	}
	if n, err := strconv.Atoi(c.String(first)); first == "n" && err == nil {
		return strconv.Itoa(n)
	}
	return quote(c.String(first))
}

// variables are those of -e, or nil if some are copied from the user's own environment: their values are
// hers, and not for a file.
func variables(pairs []string) map[string]string {
	env := map[string]string{}
	for _, p := range pairs {
		name, value, found := strings.Cut(p, "=")
		if !found {
			return nil
		}
		env[name] = value
	}
	return env
}

// Topology returns the part of a job file that is about groups.
func Topology(t *groups.Topology) string {
	var b strings.Builder
	for i := range t.Groups {
		printGroup(&b, &t.Groups[i])
	}
	for _, l := range t.Links {
		fmt.Fprintf(&b, "\n[[%s]]\nname = %s\ngroups = %s\n", linkKey, quote(l.Name), list(l.Groups))
		if l.MinRTT > 0 || l.MaxRTT > 0 {
			fmt.Fprintf(&b, "rtt = %s\n", quote(writeRTT(l.MinRTT, l.MaxRTT)))
		}
		if !l.Bandwidth.IsZero() {
			fmt.Fprintf(&b, "bandwidth = %s\n", quote(bandwidth.writeRange(l.Bandwidth)))
		}
	}
	if !t.Utility.IsZero() {
		fmt.Fprintf(&b, "\n[%s]\n", utilityKey)
		fmt.Fprintf(&b, "satisfaction = %s\n", strconv.FormatFloat(t.Utility.Satisfaction, 'f', -1, 64))
		fmt.Fprintf(&b, "utilisation = %s\n", strconv.FormatFloat(t.Utility.Utilisation, 'f', -1, 64))
	}
	return b.String()
}

func printGroup(b *strings.Builder, g *groups.Group) {
	fmt.Fprintf(b, "\n[[%s]]\nname = %s\n", groupKey, quote(g.Name))
	if len(g.Args) > 0 {
		fmt.Fprintf(b, "%s = %s\n", commandKey, list(g.Args))
	}
	if g.Min == g.Max {
		fmt.Fprintf(b, "n = %d\n", g.Min)
	} else {
		fmt.Fprintf(b, "n = \"%d..%d\"\n", g.Min, g.Max)
	}
	for _, r := range ranges {
		text := r.kind.writeRange(*r.of(g))
		if _, err := strconv.Atoi(text); err != nil {
			text = quote(text)
		}
		if !r.of(g).IsZero() {
			fmt.Fprintf(b, "%s = %s\n", r.key, text)
		}
	}
	for _, t := range []struct{ key, text string }{{"where", g.Where}, {"homogeneous", g.Homogeneous}, {"restart", g.Restart}} {
		if t.text != "" {
			fmt.Fprintf(b, "%s = %s\n", t.key, quote(t.text))
		}
	}
	prefer := preferWord + span(g.Prefer)
	switch {
	case g.Clusters == 1 && g.Prefer > 0:
		fmt.Fprintf(b, "unsplit = %s\n", quote(prefer))
	case g.Clusters == 1:
		fmt.Fprintf(b, "unsplit = true\n")
	case g.Clusters > 1 && g.Prefer > 0:
		fmt.Fprintf(b, "clusters = %s\n", quote(strconv.Itoa(g.Clusters)+" "+prefer))
	case g.Clusters > 1:
		fmt.Fprintf(b, "clusters = %d\n", g.Clusters)
	}
	if len(g.Env) > 0 {
		printEnv(b, groupKey+".env", g.Env)
	}
}

// span writes a length of time without what is none of it: "10m", not "10m0s".
func span(d codec.Duration) string {
	s := d.String()
	if rest, ok := strings.CutSuffix(s, "m0s"); ok {
		s = rest + "m"
	}
	if rest, ok := strings.CutSuffix(s, "h0m"); ok {
		s = rest + "h"
	}
	return s
}

func printEnv(b *strings.Builder, table string, env map[string]string) {
	fmt.Fprintf(b, "\n[%s]\n", table)
	for _, name := range slices.Sorted(maps.Keys(env)) {
		key := name
		if strings.Trim(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != "" {
			key = quote(key)
		}
		fmt.Fprintf(b, "%s = %s\n", key, quote(env[name]))
	}
}

func list(texts []string) string {
	var quoted []string
	for _, t := range texts {
		quoted = append(quoted, quote(t))
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// quote writes text as TOML, which has other escapes than Go.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteString(`\` + string(r))
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case !unicode.IsPrint(r): // TOML takes some of these as they are, a terminal takes them for more than text
			fmt.Fprintf(&b, `\U%08X`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String() + `"`
}
