package jobfile

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"zorilla/cmd/zorilla/config"
	"zorilla/cmd/zorilla/script"
	"zorilla/cmd/zorilla/suggest"
)

// Expand returns a command line with what its job file says in place of the file: the options before those that
// were typed, which win, and the command. args are the program, a command, and what follows: options, the file,
// more options, and after -- further arguments of the job's command. Other command lines are left alone, with a nil file. Options that
// only other has, which takes job files too, are left out. What needs a right of the user's is an error, unless
// script.TrustOption was typed.
func Expand(cmd, other *cli.Command, args []string) (expanded []string, f *File, err error) {
	t, err := readTyped(cmd, args[2:])
	if err != nil || t.path == "" {
		return args, nil, err
	}
	if f, err = Read(t.path, slices.Concat(cmd.Flags, other.Flags)); err != nil {
		return nil, nil, err
	}
	if !t.trusted {
		if err := f.judge(); err != nil {
			return nil, nil, err
		}
	}
	command := slices.Concat(f.Command, t.rest)
	if err := f.complete(command); err != nil {
		return nil, nil, err
	}
	return slices.Concat(args[:2], f.words(cmd, t.names), t.options, []string{"--"}, command), f, nil
}

// typed is a command line.
type typed struct {
	options []string
	names   map[string]string // the first name of an option: as it was typed
	trusted bool
	path    string   // of the job file, "" = none
	rest    []string // after --
}

// readTyped reads what follows a command.
func readTyped(cmd *cli.Command, words []string) (t typed, err error) {
	t.names = map[string]string{}
	for i := 0; i < len(words); i++ {
		word := words[i]
		switch option := len(word) > 1 && word[0] == '-' && word != "--"; {
		case option:
			t.options = append(t.options, word)
			name, value, valued := strings.Cut(strings.TrimLeft(word, "-"), "=")
			flag := find(cmd.Flags, name)
			if flag == nil {
				continue // whoever parses it says so
			}
			first := config.Names(flag)[0]
			t.names[first] = name
			_, isBool := flag.(*cli.BoolFlag)
			t.trusted = t.trusted || first == script.TrustOption && (!valued || value == "true")
			if i+1 < len(words) && !isBool && !valued {
				i++
				t.options = append(t.options, words[i])
			}
		case t.path == "" && word == "--" && i+1 < len(words) && Is(words[i+1]):
		case t.path == "" && Is(word):
			t.path = word
		case t.path == "": // another command
			return typed{}, nil
		case word == "--":
			t.rest = words[i+1:]
			return t, nil
		default:
			return t, fmt.Errorf("unexpected argument %q after job file %s: arguments for its command follow --", word, t.path)
		}
	}
	return t, nil
}

func find(flags []cli.Flag, name string) cli.Flag {
	for _, f := range flags {
		if slices.Contains(config.Names(f), name) {
			return f
		}
	}
	return nil
}

// complete says what has no command.
func (f *File) complete(command []string) error {
	for i, g := range f.Topology.Groups {
		if len(g.Args) == 0 && len(command) == 0 {
			return f.wrong([]string{groupKey, strconv.Itoa(i)}, `group %s has no command, and the job has none: want command = ["./prog", "arg"]`, g.Name)
		}
	}
	if len(f.Topology.Groups) == 0 && len(command) == 0 {
		return f.wrongAt(place{1, 1}, `no command: want command = ["./prog", "arg"], or one after --`)
	}
	return nil
}

// words are the options of the file as they would be typed, but for those that were.
func (f *File) words(cmd *cli.Command, typed map[string]string) (words []string) {
	_, array := typed["a"]
	_, lines := typed["each-line"]
	for i := range f.options {
		s := &f.options[i]
		first := config.Names(s.flag)[0]
		as, said := typed[first]
		s.typed = said
		if find(cmd.Flags, first) == nil || said && !config.Repeatable(s.flag) || first == "n" && (array || lines) {
			continue
		}
		if !said { // one name for one option: the parser takes no two
			as = first
		}
		for _, v := range s.values {
			words = append(words, suggest.Dashes(as)+"="+v)
		}
	}
	if _, other := typed["graph"]; other {
		f.Graph = nil
	}
	least, most := f.Topology.Least(), f.Topology.Most()
	if f.Graph != nil {
		least, most = f.Graph.Tasks, f.Graph.Tasks
	}
	_, workers := typed["n"]
	if most > 0 && !f.has("n") && !workers && !array && !lines && !f.has("a") && !f.has("each-line") {
		f.workers = true
		words = append(words, fmt.Sprintf("-n=%d..%d", least, most)) // wins over a default of the user's
	}
	return words
}

func (f *File) has(option string) bool {
	return slices.ContainsFunc(f.options, func(s setting) bool { return config.Names(s.flag)[0] == option })
}

// judge refuses what needs a right of the user's: the file may be somebody else's.
func (f *File) judge() error {
	refuse := func(at place, key, why string) error {
		return f.wrongAt(at, "%s %s: type --%s if it may", key, why, script.TrustOption)
	}
	for _, s := range f.options {
		for i, v := range s.values {
			if why := script.Untrusted(f.Path, config.Names(s.flag)[0], v); why != "" {
				return refuse(s.at[i], s.key, why)
			}
		}
	}
	if len(f.Command) > 0 {
		if why := script.UntrustedCommand(f.Path, f.Command[0]); why != "" {
			return refuse(f.at.value(commandKey, "0"), commandKey, why)
		}
	}
	for i, g := range f.Topology.Groups {
		if len(g.Args) == 0 {
			continue
		}
		if why := script.UntrustedCommand(f.Path, g.Args[0]); why != "" {
			return refuse(f.at.value(groupKey, strconv.Itoa(i), commandKey, "0"), commandKey, why)
		}
	}
	return nil
}

// Tells are what is to be said of a file that is trusted: what it has done at the user's own machine. onEnd is the
// command that is run there when the job has ended, whoever asked for it.
func (f *File) Tells(onEnd string) (list []string) {
	for _, s := range f.options {
		for _, v := range s.values {
			switch first := config.Names(s.flag)[0]; {
			case first == "on-end" && v == onEnd:
				list = append(list, fmt.Sprintf("when it has ended this node runs, outside of the sandbox, as %s says: %s", f.Path, v))
			case first == "e" && !strings.Contains(v, "="):
				list = append(list, fmt.Sprintf("the value of your variable %s is sent along, as %s says", v, f.Path))
			}
		}
	}
	return list
}

// plainly is how the words of errors begin that name no option, by the option they are about.
var plainly = []struct{ begin, option string }{
	{"input ", "i"}, {"name ", "J"}, {"environment variable ", "e"},
}

// Blame says of what is wrong with a job where in the file it stands, if it does.
func (f *File) Blame(text string) string {
	text = strings.TrimPrefix(text, "invalid job: ")
	if f.Graph != nil {
		text = strings.ReplaceAll(text, "--graph", "[["+taskKey+"]]")
	}
	if group, rest, ok := strings.Cut(strings.TrimPrefix(text, "group "), ": "); ok && strings.HasPrefix(text, "group ") && rest != "" {
		if i := f.Topology.Index(group); i >= 0 {
			return f.blamed([]string{groupKey, strconv.Itoa(i)}, text).Error()
		}
	}
	if strings.HasPrefix(text, "command ") && len(f.Command) > 0 && strings.HasPrefix(text, "command "+f.Command[0]+" ") {
		return f.wrong([]string{commandKey, "0"}, "%s", text).Error()
	}
	for i, g := range f.Topology.Groups {
		if len(g.Args) > 0 && strings.HasPrefix(text, "command "+g.Args[0]+" ") {
			return f.wrong([]string{groupKey, strconv.Itoa(i), commandKey, "0"}, "%s", text).Error()
		}
	}
	for _, p := range plainly {
		for _, s := range f.options {
			if at := s.about(text); strings.HasPrefix(text, p.begin) && config.Names(s.flag)[0] == p.option && at != nil {
				return f.wrongAt(*at, "%s", text).Error()
			}
		}
	}
	at, found := len(text), (*setting)(nil)
	var said string
	for i := range f.options {
		for _, name := range config.Names(f.options[i].flag) {
			option := suggest.Dashes(name)
			mention := regexp.MustCompile(`(?:^|[^\w-])(` + regexp.QuoteMeta(option) + `)(?:$|[^\w-])`).FindStringSubmatchIndex(text)
			if mention != nil && mention[2] < at && f.options[i].about(text) != nil {
				at, found, said = mention[2], &f.options[i], option
			}
		}
	}
	switch {
	case found == nil && len(f.Topology.Groups) > 0 && f.workers && strings.HasPrefix(text, "-n "):
		return f.wrongAt(f.at.key(groupKey), "n %s", text[len("-n "):]).Error()
	case found == nil && len(f.Topology.Groups) > 0 && strings.HasPrefix(text, "groups: "):
		return f.wrongAt(f.at.key(groupKey), "%s", text).Error()
	case found == nil && f.Graph != nil && (strings.Contains(text, "the graph ") || strings.HasPrefix(text, "[["+taskKey+"]]")):
		return f.wrongAt(f.at.key(taskKey), "%s", text).Error()
	case found == nil:
		return text
	}
	return f.wrongAt(*found.about(text), "%s", text[:at]+found.key+text[at+len(said):]).Error()
}

// about is where the value stands that a text is about; nil = it may be one that was typed.
func (s *setting) about(text string) *place {
	for i, v := range s.values {
		name, _, _ := strings.Cut(v, "=")
		if said := strings.Contains(text, v) && config.Repeatable(s.flag); said || strings.HasPrefix(text, "environment variable "+name+":") {
			return &s.at[i]
		}
	}
	if s.typed || len(s.at) == 0 {
		return nil
	}
	return &s.at[0]
}

// ErrNone is of a command that wants a job file.
var ErrNone = errors.New("which job file? want FILE" + Suffix)
