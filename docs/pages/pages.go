// Package pages reads the commands that the pages of the documentation show, for the tests that
// type them at real nodes.
package pages

import (
	"os"
	"regexp"
	"strings"
)

// Block is commands that are shown together: an indented block, or one command within a
// sentence or a table.
type Block struct {
	Line     int       // where it begins in its page, from 1
	Commands []Command // without what they print
}

// Command is a line that is typed.
type Command struct {
	Host string // the machine before its "$", as in "alpha$ zorilla node", or ""
	Text string // without a comment that follows it
}

// Read returns the blocks of a page, in their order.
func Read(path string) ([]Block, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parse(string(b)), nil
}

const indent = "    "

var (
	prompted = regexp.MustCompile(`^([a-z]+)\$ +(.*)$`)
	comment  = regexp.MustCompile(`\s+# .*$`)
	// within is code in a sentence that is a command of ours with an argument: alone its
	// name is no more than that.
	within = regexp.MustCompile("`(zorilla\\s[^`\\s]+\\s[^`]+)`")
)

func parse(page string) []Block {
	var blocks []Block
	var block, text []string // lines of the block, or of the text, that is being read
	end := func(next int) {
		switch {
		case block != nil:
			if all := commands(block); len(all) > 0 {
				blocks = append(blocks, Block{Line: next - len(block), Commands: all})
			}
		case text != nil:
			blocks = append(blocks, inline(strings.Join(text, "\n"), next-len(text))...)
		}
		block, text = nil, nil
	}
	fenced := false
	number := 0
	for line := range strings.Lines(page) {
		number++
		line = strings.TrimRight(line, "\n")
		fence := strings.HasPrefix(line, "```")
		switch code := strings.HasPrefix(line, indent) && text == nil; {
		case fence || fenced: // the text of a file
			end(number)
			fenced = fenced != fence
		case line == "":
			end(number)
		case code:
			block = append(block, line[len(indent):])
		default:
			if block != nil {
				end(number)
			}
			text = append(text, line)
		}
	}
	end(number + 1)
	return blocks
}

// commands are the lines of a block that are typed: those after a prompt where there are any.
func commands(lines []string) []Command {
	var all []Command
	shown := prompted.MatchString(lines[0])
	for _, line := range lines {
		c := Command{Text: line}
		if m := prompted.FindStringSubmatch(line); m != nil {
			c = Command{m[1], m[2]}
		} else if shown {
			continue
		}
		if c.Text = strings.TrimRight(comment.ReplaceAllString(c.Text, ""), " "); c.Text != "" {
			all = append(all, c)
		}
	}
	return all
}

// inline are the commands within a paragraph or a table that begins in a line.
func inline(text string, line int) []Block {
	var blocks []Block
	for _, m := range within.FindAllStringSubmatchIndex(text, -1) {
		command := strings.ReplaceAll(strings.Join(strings.Fields(text[m[2]:m[3]]), " "), `\|`, "|")
		at := line + strings.Count(text[:m[0]], "\n")
		blocks = append(blocks, Block{at, []Command{{Text: command}}})
	}
	return blocks
}
