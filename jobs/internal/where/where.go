// Package where has the conditions on nodes that users write as --where: expressions
// over what a node tells of itself, with bounds on what they may cost the nodes that
// evaluate them.
package where

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/vm"
	"zorilla/internal/sanitize"
	"zorilla/internal/units"
	"zorilla/vicinity"
)

// MaxLength is how many bytes an expression of --where may take: the
// advertisement that it travels in is one packet.
const MaxLength = 256

// maxWhereNodes bounds what looking at one node costs: each operator, name and
// number is one, and none of them repeats anything.
const maxWhereNodes = 100

// Properties is what an expression can ask of a node. docs/requirements.md lists them.
type Properties struct {
	ID       string            `expr:"id"`
	Name     string            `expr:"name"`
	Site     string            `expr:"site"`
	OS       string            `expr:"os"`
	Arch     string            `expr:"arch"`
	Slots    int               `expr:"slots"`
	Mem      int               `expr:"mem"`  // bytes
	Disk     int               `expr:"disk"` // bytes that are free
	GPUs     int               `expr:"gpus"`
	Labels   map[string]string `expr:"labels"`
	Enforces []string          `expr:"enforces"`
	Version  int               `expr:"version"`

	Clock     int `expr:"clock"`     // MHz; 0 = not known, as of the next two
	Power     int `expr:"power"`     // of a core; 1000 = one of a server with 2.4 GHz
	Bandwidth int `expr:"bandwidth"` // Mbit/s
}

const propertyNames = "arch, bandwidth, clock, disk, enforces, gpus, id, labels, mem, name, os, power, site, slots and version"

// PropertiesOf is what a node says of itself; its free disk space is another
// matter.
func PropertiesOf(m vicinity.Member) Properties {
	os, arch, _ := strings.Cut(m.Platform, "/")
	p := Properties{
		ID: string(m.ID), Name: m.Name, Site: m.Site, OS: os, Arch: arch, Slots: m.Slots, Mem: int(m.Memory),
		GPUs: m.GPUs, Labels: m.Labels, Enforces: m.Enforces, Version: m.Version,
		Clock: int(m.Speeds.Clock), Power: int(m.Speeds.Power), Bandwidth: int(m.Speeds.Bandwidth),
	}
	if p.Labels == nil {
		p.Labels = map[string]string{}
	}
	return p
}

// Expr is an expression that has been checked.
type Expr struct{ program *vm.Program }

// Compile checks an expression of --where. Its errors say in which column what
// is wrong.
func Compile(text string) (Expr, error) {
	if len(text) > MaxLength {
		return Expr{}, fmt.Errorf("%d bytes, at most %d", len(text), MaxLength)
	}
	if !sanitize.Printable(text) {
		return Expr{}, errors.New("want text in one line")
	}
	s := sized(text)
	at := func(column int, message string) error {
		return fmt.Errorf("column %d: %s", s.column(column)+1, message)
	}
	explain := func(err error) error {
		var e *file.Error
		if !errors.As(err, &e) {
			return errors.New(sanitize.OneLine(err.Error()))
		}
		message := e.Message
		if name, ok := strings.CutPrefix(message, "unknown name "); ok {
			message = fmt.Sprintf("unknown property %s: there are %s", name, propertyNames)
		}
		return at(e.Column, sanitize.OneLine(message))
	}
	tree, err := parser.ParseWithConfig(s.text, nil)
	if err != nil {
		return Expr{}, explain(err)
	}
	w := whereWalk{}
	ast.Walk(&tree.Node, &w)
	switch {
	case w.message != "":
		return Expr{}, at(w.column, w.message)
	case w.nodes > maxWhereNodes:
		return Expr{}, fmt.Errorf("%d operators, names and numbers, at most %d", w.nodes, maxWhereNodes)
	}
	program, err := expr.Compile(s.text, expr.Env(Properties{}), expr.AsBool(), expr.DisableAllBuiltins())
	if err != nil {
		return Expr{}, explain(err)
	}
	return Expr{program}, nil
}

// Holds reports whether a node is as the expression wants it. What cannot be
// evaluated there, such as a division by zero, does not hold.
func (w Expr) Holds(p Properties) bool {
	result, err := vm.Run(w.program, p)
	yes, ok := result.(bool)
	return err == nil && ok && yes
}

// whereWalk looks for what must not be in an expression: whatever calls,
// repeats, or makes values larger than the expression itself.
type whereWalk struct {
	nodes   int
	column  int
	message string
}

// Visit implements ast.Visitor.
func (w *whereWalk) Visit(node *ast.Node) {
	w.nodes++
	switch n := (*node).(type) {
	case *ast.NilNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.StringNode, *ast.ConstantNode,
		*ast.UnaryNode, *ast.ConditionalNode, *ast.ArrayNode, *ast.MemberNode, *ast.ChainNode:
	case *ast.IdentifierNode:
		if strings.HasPrefix(n.Value, "$") {
			w.refuse(n, n.Value+" cannot be used here")
		}
	case *ast.BinaryNode:
		switch n.Operator {
		case "..", "|", "**", "^":
			w.refuse(n, n.Operator+" cannot be used here")
		case "matches":
			pattern, ok := n.Right.(*ast.StringNode)
			if !ok || strings.Contains(pattern.Value, "{") {
				w.refuse(n, "matches wants a pattern in quotes without {")
			} else if _, err := regexp.Compile(pattern.Value); err != nil {
				w.refuse(n, sanitize.OneLine(err.Error()))
			}
		}
	case *ast.CallNode:
		w.refuse(n, "there are no functions")
	case *ast.BuiltinNode:
		w.refuse(n, "there is no function "+n.Name)
	default:
		w.refuse(n, "only comparisons of properties can be used here")
	}
}

func (w *whereWalk) refuse(n ast.Node, message string) {
	if column := n.Location().From; w.message == "" || column < w.column {
		w.column, w.message = column, message
	}
}

// sizedText is an expression in which sizes such as 8G are numbers of bytes.
type sizedText struct {
	text  string
	moved []moved // in order
}

// moved tells that what stands from a column on stood elsewhere.
type moved struct{ from, was int }

// column returns where in the original what stands at a column was.
func (s sizedText) column(now int) int {
	was := now
	for _, m := range s.moved {
		if now >= m.from {
			was = m.was + now - m.from
		}
	}
	return was
}

// sized replaces sizes, but not in strings and names.
func sized(text string) sizedText {
	var s sizedText
	var b strings.Builder
	in, was := 0, 0 // columns
	var quote byte
	word := false // the last character belongs to a name or number
	for i := 0; i < len(text); {
		c := text[i]
		if quote == 0 && !word {
			if n, length := sizeAt(text[i:]); length > 0 {
				bytes := strconv.FormatInt(n, 10)
				b.WriteString(bytes)
				in, was, i = in+len(bytes), was+length, i+length
				s.moved = append(s.moved, moved{in, was})
				word = true
				continue
			}
		}
		switch {
		case quote != 0 && c == '\\' && quote != '`' && i+1 < len(text):
			b.WriteByte(c)
			i, in, was = i+1, in+1, was+1
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\'' || c == '`'):
			quote = c
		}
		_, width := utf8.DecodeRuneInString(text[i:])
		b.WriteString(text[i : i+width])
		word = wordy(text[i])
		i, in, was = i+width, in+1, was+1
	}
	s.text = b.String()
	return s
}

// sizeAt reads a size, such as 8G or 1.5GiB, at the beginning of a text; a
// length of 0 means that there is none.
func sizeAt(s string) (bytes int64, length int) {
	bytes, length = units.ScanBytes(s)
	if length < len(s) && wordy(s[length]) { // it begins a name
		return 0, 0
	}
	return bytes, length
}

// wordy reports whether a character can stand in a name or number.
func wordy(c byte) bool {
	return c == '_' || c == '.' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= utf8.RuneSelf
}
