package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/urfave/cli/v2"
)

// newApp is a command line like that of zorilla; the command that runs writes what its
// options are to got.
func newApp(places Places, got *string) *cli.App {
	client := func() []cli.Flag {
		return []cli.Flag{&cli.StringFlag{Name: "node"}, &cli.StringFlag{Name: "state-dir", Aliases: []string{"state"}}}
	}
	job := func() []cli.Flag {
		return append(client(), &cli.StringFlag{Name: "n", Aliases: []string{"np"}, Value: "1"}, &cli.IntFlag{Name: "c", Value: 1}, &cli.StringFlag{Name: "t", Aliases: []string{"time"}},
			&cli.StringSliceFlag{Name: "i", Aliases: []string{"input"}}, &cli.Float64Flag{Name: "flood-factor"}, &cli.StringFlag{Name: "a", Aliases: []string{"array"}}, &cli.StringFlag{Name: "key"},
			&cli.BoolFlag{Name: "parsable", Hidden: true})
	}
	app := &cli.App{Name: "zorilla", DisableSliceFlagSeparator: true, ExitErrHandler: func(*cli.Context, error) {}, Commands: []*cli.Command{
		{Name: "run", Flags: append(job(), &cli.BoolFlag{Name: "l", Aliases: []string{"label"}})},
		{Name: "submit", Flags: job()},
		{Name: "ps", Flags: []cli.Flag{&cli.StringFlag{Name: "state"}, &cli.StringFlag{Name: "node"}, &cli.StringFlag{Name: "state-dir"}, &cli.BoolFlag{Name: "all", Aliases: []string{"a"}}, &cli.IntFlag{Name: "n", Aliases: []string{"limit"}}}},
		{Name: "cancel", Flags: append(client(), &cli.BoolFlag{Name: "all"})},
		{Name: "node", Flags: []cli.Flag{&cli.StringSliceFlag{Name: "join", EnvVars: []string{"ZORILLA_JOIN"}}, &cli.StringFlag{Name: "secret"}, &cli.StringFlag{Name: "secret-file", EnvVars: []string{"ZORILLA_SECRET_FILE"}},
			&cli.StringFlag{Name: "state-dir", EnvVars: []string{"ZORILLA_STATE"}}, &cli.IntFlag{Name: "slots", EnvVars: []string{"ZORILLA_SLOTS"}}, &cli.DurationFlag{Name: "node-limit", Value: time.Hour}}},
		{Name: "version", Flags: []cli.Flag{&cli.BoolFlag{Name: "json"}}},
		{Name: "lead", Hidden: true, Flags: []cli.Flag{&cli.BoolFlag{Name: "x"}}},
	}}
	for _, cmd := range app.Commands {
		cmd.Action = func(c *cli.Context) error {
			files, err := Read(places, c.App)
			if err != nil {
				return err
			}
			used, err := files.Apply(c)
			if err != nil {
				return err
			}
			var words []string
			for _, f := range visible(c.Command) {
				for _, name := range f.Names() { // whichever is asked for
					if c.IsSet(name) {
						value := c.Value(name)
						if Repeatable(f) {
							value = c.StringSlice(name)
						}
						words = append(words, fmt.Sprintf("%s=%v", name, value))
					}
				}
			}
			*got = used.Blame(strings.Join(words, " "))
			return nil
		}
	}
	return app
}

// placed writes the user's file and the system's, each if it has a text.
func placed(t *testing.T, user, system string) Places {
	t.Helper()
	dir := t.TempDir()
	p := Places{User: filepath.Join(dir, "user.toml"), System: filepath.Join(dir, "system.toml")}
	for path, text := range map[string]string{p.User: user, p.System: system} {
		if text != "" {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	return p
}

func TestWhatIsNearerWins(t *testing.T) {
	const full = "[job]\nnp = 4\ntime = \"1h\"\n[run]\nnp = \"2..8\"\nlabel = true\n"
	for _, e := range []struct{ about, user, system, env, line, want string }{
		{"no file", "", "", "", "run", ""},
		{"the command's own table", full, "", "", "run", "n=2..8 np=2..8 t=1h time=1h l=true label=true"},
		{"a shared table", full, "", "", "submit", "n=4 np=4 t=1h time=1h"},
		{"another command", full, "", "", "ps", ""},
		{"it is typed by another name", full, "", "", "run -n 1 --time 5 -l=false", "n=1 np=1 t=5 time=5 l=false label=false"},
		{"the system's file alone", "", full, "", "run", "n=2..8 np=2..8 t=1h time=1h l=true label=true"},
		{"the user's wins, also in a shared table", "[job]\nn = 1\n", full, "", "run", "n=1 np=1 t=1h time=1h l=true label=true"},
		{"lists are not joined", "[job]\ninput = [\"a,b\", 'c']\n", "[run]\ni = 'd'\n", "", "run", "i=[a,b c] input=[a,b c]"},
		{"a typed list", "[job]\ninput = [\"a\"]\n", "", "", "run -i x", "i=[x] input=[x]"},
		{"a variable", "[node]\nslots = 3\n", "[node]\nslots = 4\n", "ZORILLA_SLOTS=5", "node", "slots=5"},
		{"typed, and a variable", "[node]\nslots = 3\n", "", "ZORILLA_SLOTS=5", "node --slots 6", "slots=6"},
		{"a list of a variable", "[node]\njoin = \"a:1\"\n", "", "ZORILLA_JOIN=b:1", "node", "join=[b:1]"},
		{"an empty variable", "[node]\nsecret-file = \"/f\"\n", "", "ZORILLA_SECRET_FILE=", "node", "secret-file=/f"},
		{"an empty variable of a list", "[node]\njoin = \"a:1\"\n", "", "ZORILLA_JOIN=", "node", "join=[a:1]"},
		{"an empty variable of where it is", "", "[client]\nnode = \"/n\"\n", "ZORILLA_STATE=", "ps", "node=/n"},
		{"all kinds", "job = {c = 0x10, flood-factor = 2}\nnode.node-limit = '90s'\n", "", "", "run", "c=16 flood-factor=2"},
		{"a time", "node.node-limit = '90s'", "", "", "node", "node-limit=1m30s"},
		{"where the node is", "", "[client]\nnode = \"/n\"\n", "", "ps", "node=/n"},
		{"where else it is", "[client]\nstate-dir = \"/s\"\n", "[client]\nnode = \"/n\"\n", "", "ps", "state-dir=/s"},
		{"where else, by a variable", "", "[client]\nnode = \"/n\"\n", "ZORILLA_STATE=/s", "ps", ""},
		{"where else, typed", "", "[client]\nnode = \"/n\"\n", "", "ps --state-dir /s", "state-dir=/s"},
		{"of this command alone", "[client]\nnode = \"/n\"\n[ps]\nstate-dir = \"/s\"\n", "", "", "ps", "state-dir=/s"},
		{"a name that means something else there", "[client]\nstate = \"/s\"\n", "", "", "cancel", "state-dir=/s state=/s"},
		{"that is no option of a node", "[client]\nstate-dir = \"/s\"\n", "", "", "node", ""},
		{"an array has no number of workers", "[job]\nnp = 4\n", "", "", "run -a 1-3", "a=1-3 array=1-3"},
		{"an option that only has a name of an array's", "[ps]\nn = 5\n", "", "", "ps -a", "all=true a=true n=5 limit=5"},
		{"one secret", "", "[node]\nsecret-file = \"/f\"\n", "", "node --secret x", "secret=x"},
	} {
		t.Run(e.about, func(t *testing.T) {
			for _, name := range []string{"ZORILLA_SLOTS", "ZORILLA_JOIN", "ZORILLA_STATE", "ZORILLA_NODE", "ZORILLA_SECRET_FILE"} {
				t.Setenv(name, "") // restores it
				os.Unsetenv(name)
			}
			if name, value, found := strings.Cut(e.env, "="); found {
				t.Setenv(name, value)
				DropEmpty()
			}
			var got string
			if err := newApp(placed(t, e.user, e.system), &got).Run(append([]string{"zorilla"}, strings.Fields(e.line)...)); err != nil || got != e.want {
				t.Errorf("%s: got %q, want %q, %v", e.line, got, e.want, err)
			}
		})
	}
}

// What is told to be in force is what a command has, also where a variable says nothing.
func TestInForce(t *testing.T) {
	for variable, e := range map[string]struct{ command, option, file, value string }{
		"ZORILLA_SLOTS":       {"node", "slots", "3", "4"},
		"ZORILLA_JOIN":        {"node", "join", "'a:1'", "b:1"},
		"ZORILLA_SECRET_FILE": {"node", "secret-file", "'/f'", "/g"},
		"ZORILLA_STATE":       {"ps", "state-dir", "'/s'", "/t"},
		"ZORILLA_NODE":        {"ps", "node", "'/n'", "/m"},
	} {
		for _, value := range []string{"", e.value} {
			t.Run(variable+"="+value, func(t *testing.T) {
				for _, name := range []string{"ZORILLA_SLOTS", "ZORILLA_JOIN", "ZORILLA_STATE", "ZORILLA_NODE", "ZORILLA_SECRET_FILE"} {
					t.Setenv(name, "")
					os.Unsetenv(name)
				}
				t.Setenv(variable, value)
				DropEmpty()
				places := placed(t, fmt.Sprintf("[%s]\n%s = %s\n", e.command, e.option, e.file), "")
				var got string
				app := newApp(places, &got)
				files, err := Read(places, app)
				if err != nil {
					t.Fatal(err)
				}
				list := files.InForce(app.Command(e.command))
				o := list[slices.IndexFunc(list, func(o Option) bool { return o.Option == e.option })]
				text, source := strings.Trim(e.file, "'"), FromFile
				if value != "" {
					text, source = value, FromEnvironment
				}
				if o.Source != source || !slices.Equal(o.Values, []string{text}) {
					t.Errorf("told is %+v", o)
				}
				if err := app.Run([]string{"zorilla", e.command}); err != nil {
					t.Fatal(err)
				}
				// A client looks at its variables itself.
				want := e.option + "=" + text
				if e.option == "join" {
					want = "join=[" + text + "]"
				}
				if client := e.command == "ps" && value != ""; client && got != "" || !client && got != want {
					t.Errorf("the command has %q, want %q", got, want)
				}
			})
		}
	}
}

func TestWhatIsWrongIsToldByLine(t *testing.T) {
	for text, want := range map[string]string{
		"[job]\nnpp = 1":                            ":2: [job] has no option npp: did you mean n?",
		"\n[rnu]\nnp = 1":                           ":2: unknown table [rnu]: did you mean [run]?",
		"[sbatch]\n":                                ":1: unknown table [sbatch]: did you mean [submit]?",
		"[frobnicate]\n":                            ":1: unknown table [frobnicate]: tables are called as commands, as in [run], or [job] or [client]",
		"[version]\njson = true":                    "unknown table [version]",
		"[lead]\nx = true":                          "unknown table [lead]",
		"[run]\nntasks = 3":                         ":2: [run] has no option ntasks: did you mean n?",
		"[run]\n\"--np\" = 3":                       ":2: [run] has no option --np: did you mean np?",
		"[run]\nparsable = true":                    ":2: [run] has no option parsable",
		"[run]\nhelp = true":                        ":2: [run] has no option help",
		"[job]\nlabel = true":                       ":2: [job] has no option label: it stands below [run]",
		"[job]\nnode = '/x'":                        ":2: [job] has no option node: it stands below [client]",
		"[client]\nnp = 1":                          ":2: [client] has no option np: it stands below [job]",
		"np = 4":                                    ":1: np stands in no table: put it below [job]",
		"node = '/x'":                               ":1: node stands in no table: put it below [client]",
		"x = 1":                                     ":1: x is no table of options",
		"[[run]]\nnp = 1":                           ":1: run is no table of options",
		"[run]\nnp = 4\nc = 'x'\n":                  ":3: [run] c: want a whole number",
		"[run]\nc = 1.5":                            ":2: [run] c: want a whole number",
		"[run]\nlabel = 'yes'":                      ":2: [run] label: want true or false",
		"[run]\nnp = true":                          ":2: [run] np: want text in quotation marks",
		"[run]\nnp = [1, 2]":                        ":2: [run] np: want one value, not a list",
		"[run]\nnp = 1979-05-27":                    ":2: [run] np: want text in quotation marks",
		"[run.np]\nx = 1":                           ":1: [run] np: want text",
		"[run]\ni = ['a', ['b']]":                   ":2: [run] i: want a list",
		"[run]\ni = []":                             ":2: [run] i: the list is empty: leave the option out",
		"[run]\nflood-factor = inf":                 ":2: [run] flood-factor: want a number",
		"[node]\nnode-limit = 'soon'":               ":2: [node] node-limit: \"soon\": want a time such as \"10m\"",
		"[node]\nnode-limit = 10":                   ":2: [node] node-limit: want a time",
		"[run]\nn = 1\nc = 2\nnp = 2":               ":4: [run] np is what stands in line 2",
		"[run]\nn = 1\nn = 2":                       ":3: key n is already defined",
		"[run]\nkey = 'k'":                          ":2: [run] key is of one call, and no default: type it",
		"[job]\nkey = 'k'":                          ":2: [job] key is of one call, and no default: type it",
		"[cancel]\nall = true":                      ":2: [cancel] all is of one call, and no default: type it",
		"[run]\nnp = ":                              ":2: expected value",
		"[run]\nnp = '\xff'":                        ":2: invalid UTF-8",
		"\xff\xfe[\x00r\x00":                        ":1: ",
		"[run\n":                                    ":1: ",
		"[run]\nc = 99999999999999999999":           ":2: decimal number is too large",
		"[run]\nnp = " + strings.Repeat("[", 20000): ":2: arrays and inline tables are nested more",
		"# " + strings.Repeat("x", maxFile):         ": has more than 64 KiB",
	} {
		places := placed(t, text, "")
		var got string
		err := newApp(places, &got).Run([]string{"zorilla", "ps"})
		if err == nil || !strings.HasPrefix(err.Error(), places.User+want) && !(want[0] != ':' && strings.Contains(err.Error(), want)) {
			t.Errorf("%.40q: got %v, want %s", text, err, want)
		}
		if err != nil && strings.ContainsAny(err.Error(), "\n") {
			t.Errorf("%.40q: more than a line: %q", text, err)
		}
	}
}

// What others may have written, or made, is not believed, and nothing hangs on it.
func TestOnlyFilesOfOnesOwnCount(t *testing.T) {
	const text = "[run]\nnp = 4\n"
	for about, e := range map[string]struct {
		make func(path string) error
		want string // "" = it counts, "-" = it is as none
	}{
		"private":    {func(p string) error { return os.Chmod(p, 0o600) }, ""},
		"readable":   {func(p string) error { return os.Chmod(p, 0o644) }, ""},
		"of a group": {func(p string) error { return os.Chmod(p, 0o664) }, "others can write it, and so decide what your commands do: chmod go-w "},
		"of all":     {func(p string) error { return os.Chmod(p, 0o606) }, "others can write it"},
		"a directory": {func(p string) error {
			if err := os.Remove(p); err != nil {
				return err
			}
			return os.Mkdir(p, 0o700)
		}, "is no regular file"},
		"a pipe": {func(p string) error {
			if err := os.Remove(p); err != nil {
				return err
			}
			return syscall.Mkfifo(p, 0o600)
		}, "is no regular file"},
		"a link":       {func(p string) error { return os.Symlink(p, p+".link") }, ""},
		"a loop":       {func(p string) error { return os.Rename(link(p, p), p) }, "too many levels of symbolic links"},
		"a dead link":  {func(p string) error { return os.Rename(link(p, p+".gone"), p) }, "-"},
		"an old story": {os.Remove, "-"},
	} {
		t.Run(about, func(t *testing.T) {
			places := placed(t, text, "")
			if err := e.make(places.User); err != nil {
				t.Fatal(err)
			}
			var got string
			switch err := newApp(places, &got).Run([]string{"zorilla", "run"}); {
			case e.want == "" && (err != nil || got != "n=4 np=4"), e.want == "-" && (err != nil || got != ""):
				t.Errorf("got %q, %v", got, err)
			case len(e.want) > 1 && (err == nil || !strings.Contains(err.Error(), e.want)):
				t.Errorf("got %v, want %s", err, e.want)
			}
		})
	}
	for err, want := range map[error]bool{syscall.ENOENT: true, syscall.ENOTDIR: true, syscall.EACCES: true, syscall.EIO: false, syscall.ELOOP: false} {
		if got := missing(err); got != want {
			t.Errorf("%v: missing is %t", err, got)
		}
	}
	info, err := os.Stat(placed(t, text, "").User)
	if err != nil {
		t.Fatal(err)
	}
	if err := trusted("f", true, belongsTo{info, uint32(os.Geteuid()) + 1}); err == nil || !strings.Contains(err.Error(), "f: belongs to user ") {
		t.Errorf("of another user: %v", err)
	}
	for _, uid := range []uint32{0, uint32(os.Geteuid())} {
		if err := trusted("f", true, belongsTo{info, uid}); err != nil {
			t.Error(err)
		}
	}
}

// link makes a link beside a path and returns where.
func link(path, to string) string {
	if err := os.Symlink(to, path+".new"); err != nil {
		return err.Error()
	}
	return path + ".new"
}

// belongsTo is a file of some user.
type belongsTo struct {
	os.FileInfo
	uid uint32
}

func (b belongsTo) Sys() any {
	st := *b.FileInfo.Sys().(*syscall.Stat_t)
	st.Uid = b.uid
	return &st
}

func TestSecretsStandWhereNobodyElseReads(t *testing.T) {
	for _, e := range []struct {
		text, want string // in a private file of the user, anything goes
	}{
		{"[node]\nsecret = 'abc'", "secret"},
		{"[node]\njoin = ['a:5444', 'zor1.AAAA']", "join"},
		{"[node]\njoin = 'a:5444,zor1.AAAA'", "join"},
		{"[client]\nnode = 'http://127.0.0.1:5446/?token=abc'", "node"},
		{"[node]\njoin = 'a:5444, zor1.AAAA'", "join"},
		{"[node]\njoin = ['a:5444']\nsecret-file = '/s'", ""},
		{"[node]\njoin = ['a']", ""}, // a mistake, and no secret
		{"[client]\nnode = '/s'", ""},
	} {
		var got string
		if err := newApp(placed(t, e.text, ""), &got).Run([]string{"zorilla", "ps"}); err != nil {
			t.Errorf("%s: %v", e.text, err)
		}
		places := placed(t, e.text, "")
		if err := os.Chmod(places.User, 0o640); err != nil {
			t.Fatal(err)
		}
		if err := newApp(places, &got).Run([]string{"zorilla", "ps"}); (err != nil) != (e.want != "") || err != nil && !strings.HasSuffix(err.Error(), e.want+": this is a secret, which others can read here: chmod 600 "+places.User) {
			t.Errorf("%s: %v", e.text, err)
		}
		if err := newApp(placed(t, "", e.text), &got).Run([]string{"zorilla", "ps"}); (err != nil) != (e.want != "") || err != nil && !strings.Contains(err.Error(), "and secret-file here") {
			t.Errorf("%s in the system's: %v", e.text, err)
		}
	}
}

func TestBlame(t *testing.T) {
	places := placed(t, "[run]\nnp = 4\nc = 2\n", "")
	var used *Used
	app := newApp(places, new(string))
	app.Command("run").Action = func(c *cli.Context) error {
		files, err := Read(places, c.App)
		if err == nil {
			used, err = files.Apply(c)
		}
		return err
	}
	if err := app.Run([]string{"zorilla", "run"}); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"-n 4: too many":      " (-n is from " + places.User + ":2)",
		"--np, and -c: no":    " (--np is from " + places.User + ":2, -c is from " + places.User + ":3)",
		"--np-x and x-n, -nn": "",
		"n c":                 "",
	} {
		if got := used.Blame(text); got != text+want {
			t.Errorf("got %s", got)
		}
	}
}

func TestUsualPlaces(t *testing.T) {
	for _, e := range []struct {
		config, xdg, home string
		want              Places
	}{
		{"", "/x", "/h", Places{User: "/x/zorilla/config.toml", System: systemFile}},
		{"", "", "/h", Places{User: "/h/.config/zorilla/config.toml", System: systemFile}},
		{"", "relative", "/h", Places{System: systemFile}},
		{"", "", "", Places{System: systemFile}},
		{"none", "/x", "/h", Places{}},
		{"/f", "/x", "/h", Places{User: "/f", System: systemFile, Named: true}},
		{systemFile, "/x", "/h", Places{System: systemFile, Named: true}},
		{"/etc//zorilla/config.toml", "/x", "/h", Places{System: systemFile, Named: true}},
	} {
		t.Setenv(Variable, e.config)
		t.Setenv("XDG_CONFIG_HOME", e.xdg)
		t.Setenv("HOME", e.home)
		if got := Usual(); got != e.want {
			t.Errorf("%+v: got %+v", e, got)
		}
	}
	for _, p := range []Places{{User: "/no/such/file", Named: true}, {System: "/no/such/file", Named: true}} {
		if _, err := Read(p, newApp(Places{}, new(string))); err == nil || !strings.Contains(err.Error(), "which $ZORILLA_CONFIG names") {
			t.Errorf("%+v: %v", p, err)
		}
	}
	if _, err := Read(Places{System: "/no/such/file"}, newApp(Places{}, new(string))); err != nil {
		t.Error(err)
	}
}

// FuzzParse has no text end the program, and every setting be of its own line.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"[job]\nnp = 4\n", "run = {c = 1, i = ['a']}", "[node]\njoin.x = 1", "a.b.c = [[1]]\n[[a]]", "\"\\u0000\" = 1"} {
		f.Add([]byte(text))
	}
	app := newApp(Places{}, new(string))
	f.Fuzz(func(t *testing.T, text []byte) {
		file := &file{path: "f", user: true, private: true, text: text}
		err := file.parse(newLayout(app))
		if err != nil && !strings.HasPrefix(err.Error(), "f:") {
			t.Errorf("%q", err)
		}
		for _, s := range file.settings {
			if s.line < 1 || s.line > 1+strings.Count(string(text), "\n") || len(s.values) == 0 {
				t.Errorf("%+v", s)
			}
		}
	})
}
