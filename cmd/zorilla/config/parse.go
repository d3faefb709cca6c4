package config

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
	"github.com/urfave/cli/v2"
)

// parse reads the text of a file into its settings.
func (f *file) parse(l *layout) error {
	var tables map[string]any
	if err := toml.Unmarshal(f.text, &tables); err != nil {
		line, text := 1, strings.TrimPrefix(err.Error(), "toml: ")
		if at := (*toml.DecodeError)(nil); errors.As(err, &at) {
			line, _ = at.Position()
		}
		return f.wrong(line, "%s", text)
	}
	at := lines(f.text)
	seen := map[string]int{} // table and first name of an option: its line
	for _, table := range byLine(tables, func(table string) int { return at[table] }) {
		line := at[table]
		options, ok := tables[table].(map[string]any)
		if !ok {
			return f.wrong(line, "%s", l.outside(table))
		}
		if err := l.checkTable(table); err != nil {
			return f.wrong(line, "%w", err)
		}
		for _, name := range byLine(options, func(name string) int { return at[table+"\n"+name] }) {
			line := max(line, at[table+"\n"+name]) // an inline table has but one
			flag, err := l.option(table, name)
			if err != nil {
				return f.wrong(line, "%w", err)
			}
			key := table + "\n" + Names(flag)[0]
			if before := seen[key]; before > 0 {
				return f.wrong(line, "[%s] %s is what stands in line %d", table, name, before)
			}
			seen[key] = line
			values, err := Values(flag, options[name])
			if err == nil {
				err = f.secret(Names(flag)[0], values)
			}
			if err != nil {
				return f.wrong(line, "[%s] %s: %w", table, name, err)
			}
			f.settings = append(f.settings, setting{table, flag, values, f.path + ":" + strconv.Itoa(line), f.path, line})
		}
	}
	return nil
}

func (f *file) wrong(line int, format string, args ...any) error {
	return fmt.Errorf("%s:%d: "+format, append([]any{f.path, line}, args...)...)
}

// byLine are the keys of a table in the order of the file.
func byLine(table map[string]any, line func(string) int) []string {
	return slices.SortedStableFunc(maps.Keys(table), func(a, b string) int {
		if line(a) != line(b) {
			return line(a) - line(b)
		}
		return strings.Compare(a, b)
	})
}

// lines tells the line on which tables and what is in them first stand, by table, or by table
// and key with a line's end between.
func lines(text []byte) map[string]int {
	at := map[string]int{}
	var p unstable.Parser
	p.Reset(text)
	var table []string
	for p.NextExpression() {
		e := p.Expression()
		var keys []string
		line := 0
		for it := e.Key(); it.Next(); {
			n := it.Node()
			keys, line = append(keys, string(n.Data)), p.Shape(n.Raw).Start.Line
		}
		switch e.Kind {
		case unstable.Table, unstable.ArrayTable:
			table = keys
		case unstable.KeyValue:
			keys = slices.Concat(table, keys)
		default:
			continue
		}
		for n := 1; n <= min(2, len(keys)); n++ {
			if key := strings.Join(keys[:n], "\n"); at[key] == 0 {
				at[key] = line
			}
		}
	}
	return at
}

// Values returns a value of a file as it would be typed.
func Values(flag cli.Flag, value any) ([]string, error) {
	list, isList := value.([]any)
	if isList && !Repeatable(flag) {
		return nil, errors.New("want one value, not a list")
	}
	if !isList {
		list = []any{value}
	}
	if isList && len(list) == 0 {
		return nil, errors.New("the list is empty: leave the option out")
	}
	var values []string
	for _, v := range list {
		text, err := valueOf(flag, v)
		if err != nil {
			return nil, err
		}
		values = append(values, text)
	}
	return values, nil
}

// Kind reports what kind of value an option of a command has, as it is typed. One that the
// command does not list is of the parser's own, which are switches.
func Kind(cmd *cli.Command, option string) string {
	if f := flagOf(cmd, option); f != nil {
		return kind(f)
	}
	return "true or false"
}

func kind(flag cli.Flag) string {
	switch flag.(type) {
	case *cli.BoolFlag:
		return "true or false"
	case *cli.IntFlag, *cli.IntSliceFlag:
		return "a whole number"
	case *cli.Float64Flag:
		return "a number"
	case *cli.DurationFlag:
		return "a time such as 10m"
	}
	return "text"
}

// kindHere is the kind of value that an option has in a file.
func kindHere(flag cli.Flag) string {
	switch flag.(type) {
	case *cli.DurationFlag:
		return `a time such as "10m"`
	case *cli.StringSliceFlag:
		return `a list such as ["a", "b"], or one value`
	case *cli.StringFlag:
		return `text in quotation marks, as in "text"`
	}
	return kind(flag)
}

func valueOf(flag cli.Flag, value any) (string, error) {
	var text string
	fits := false
	switch v := value.(type) {
	case string:
		text = v
		switch flag.(type) {
		case *cli.StringFlag, *cli.StringSliceFlag, *cli.DurationFlag:
			fits = true
		}
	case int64:
		text = strconv.FormatInt(v, 10)
		switch flag.(type) {
		case *cli.StringFlag, *cli.StringSliceFlag, *cli.Float64Flag, *cli.IntFlag: // np = 4, time = 600
			fits = true
		}
	case float64:
		_, fits = flag.(*cli.Float64Flag)
		fits = fits && !math.IsNaN(v) && !math.IsInf(v, 0)
		text = strconv.FormatFloat(v, 'g', -1, 64)
	case bool:
		_, fits = flag.(*cli.BoolFlag)
		text = strconv.FormatBool(v)
	}
	if !fits {
		return "", fmt.Errorf("want %s", kindHere(flag))
	}
	if _, isTime := flag.(*cli.DurationFlag); isTime {
		if _, err := time.ParseDuration(text); err != nil {
			return "", fmt.Errorf("%q: want %s", text, kindHere(flag))
		}
	}
	return text, nil
}
