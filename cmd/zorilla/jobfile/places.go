package jobfile

import (
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// place is where something stands, both from 1; columns are bytes.
type place struct{ line, column int }

// places are where keys and their values stand. A key is named by those above it; the tables of an array and
// the values of a list have their numbers, from 0, as keys.
type places map[string]place

const (
	below   = "\n"
	valueOf = below + "=" // no key: it would be quoted, and be followed by something
)

func name(path []string) string { return strings.Join(path, below) }

// key is where a key stands, or what it is below.
func (at places) key(path ...string) place {
	for n := len(path); n > 0; n-- {
		if p, ok := at[name(path[:n])]; ok {
			return p
		}
	}
	return place{1, 1}
}

// value is where the value of a key stands.
func (at places) value(path ...string) place {
	if p, ok := at[name(path)+valueOf]; ok {
		return p
	}
	return at.key(path...)
}

// keys are those of the table at a path, in the order of the file.
func (at places) keys(table map[string]any, path ...string) []string {
	of := func(key string) place { return at[name(append(path[:len(path):len(path)], key))] }
	return sorted(table, func(a, b string) int {
		p, q := of(a), of(b)
		if p.line != q.line {
			return p.line - q.line
		}
		return p.column - q.column
	})
}

// locator finds the places of a text that is valid TOML.
type locator struct {
	parser unstable.Parser
	at     places
	count  map[string]int // of the tables of each array so far
}

func locate(text []byte) places {
	l := &locator{at: places{}, count: map[string]int{}}
	l.parser.Reset(text)
	var table []string
	for l.parser.NextExpression() {
		switch e := l.parser.Expression(); e.Kind {
		case unstable.Table, unstable.ArrayTable:
			table = l.table(e)
		case unstable.KeyValue:
			l.entry(table, e)
		}
	}
	return l.at
}

// note keeps the first place of a key.
func (l *locator) note(path []string, n *unstable.Node) {
	if _, ok := l.at[name(path)]; !ok {
		l.at[name(path)] = l.place(n)
	}
}

func (l *locator) place(n *unstable.Node) place {
	p := l.parser.Shape(n.Raw).Start
	return place{p.Line, p.Column}
}

// table returns the path of the table that a line begins.
func (l *locator) table(e *unstable.Node) (path []string) {
	for it := e.Key(); it.Next(); {
		n := it.Node()
		path = append(path, string(n.Data))
		l.note(path, n)
		array := name(path)
		if e.Kind == unstable.ArrayTable && it.IsLast() {
			l.count[array]++
		}
		if l.count[array] > 0 { // what is below belongs to the last of them
			path = append(path, strconv.Itoa(l.count[array]-1))
			l.note(path, n)
		}
	}
	return path
}

// entry notes a key in a table, and its value.
func (l *locator) entry(table []string, e *unstable.Node) {
	path := append([]string(nil), table...)
	var last *unstable.Node
	for it := e.Key(); it.Next(); {
		last = it.Node()
		path = append(path, string(last.Data))
		l.note(path, last)
	}
	l.value(path, e.Value(), last)
}

// value notes a value; a list stands where its key does.
func (l *locator) value(path []string, v, key *unstable.Node) {
	if v.Raw.Length > 0 {
		key = v
	}
	l.at[name(path)+valueOf] = l.place(key)
	if v.Kind != unstable.Array && v.Kind != unstable.InlineTable {
		return
	}
	n := 0
	for it := v.Children(); it.Next(); {
		switch c := it.Node(); c.Kind {
		case unstable.KeyValue:
			l.entry(path, c)
		case unstable.Comment:
		default:
			own := append(path[:len(path):len(path)], strconv.Itoa(n))
			l.value(own, c, key)
			l.at[name(own)] = l.at[name(own)+valueOf]
			n++
		}
	}
}
