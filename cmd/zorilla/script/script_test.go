package script

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

// write makes a file in a directory of its own, which is the current one then.
func write(t *testing.T, text string, mode os.FileMode) {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.WriteFile("job.sh", []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

var (
	submit = &cli.Command{Name: "submit", Flags: []cli.Flag{
		&cli.StringFlag{Name: "n", Aliases: []string{"np"}}, &cli.StringFlag{Name: "mem"}, &cli.BoolFlag{Name: "mpi"},
		&cli.StringSliceFlag{Name: "o", Aliases: []string{"output"}}, &cli.StringSliceFlag{Name: "e"},
	}}
	run = &cli.Command{Name: "run", Flags: append(slices.Clone(submit.Flags), &cli.StringFlag{Name: "progress"}, &cli.BoolFlag{Name: "l"})}
)

func TestMerge(t *testing.T) {
	const text = "#!/bin/bash -l\n# about it\n\n#ZORILLA -n 6 --mem=2G   # six\n#ZORILLA\t--output 'part *' -e \"A=it's\" --mpi\n#ZORILLAX -n 9\n#ZORILLA --progress out -l\necho\n#ZORILLA -n 7\n"
	for typed, want := range map[string]string{
		"submit job.sh":                     "-n 6 --mem=2G -o {part *} -e {A=it's} --mpi job.sh",
		"submit job.sh -n 3 x":              "-n 6 --mem=2G -o {part *} -e {A=it's} --mpi job.sh -n 3 x",
		"submit --np 2 job.sh":              "--mem=2G -o {part *} -e {A=it's} --mpi --np 2 job.sh",
		"submit --output a --mem 1G job.sh": "-n 6 --output {part *} -e {A=it's} --mpi --output a --mem 1G job.sh",
		"submit --mpi=false -- job.sh":      "-n 6 --mem=2G -o {part *} -e {A=it's} --mpi=false -- job.sh",
		"run job.sh":                        "-n 6 --mem=2G -o {part *} -e {A=it's} --mpi --progress out -l job.sh",
		"run sh job.sh":                     "sh job.sh",
		"run -n job.sh":                     "-n job.sh",
		"run -n 3":                          "-n 3",
		"run --nosuch job.sh":               "-n 6 --mem=2G -o {part *} -e {A=it's} --mpi --progress out -l --nosuch job.sh",
	} {
		write(t, text, 0o644)
		args := append([]string{"zorilla"}, strings.Fields(typed)...)
		cmd, other := submit, run
		if args[1] == "run" {
			cmd, other = run, submit
		}
		got, err := Merge(cmd, other, args)
		if err != nil {
			t.Fatal(err)
		}
		for i, word := range got {
			if strings.ContainsAny(word, " '") {
				got[i] = "{" + word + "}"
			}
		}
		if text := strings.Join(got[2:], " "); text != want || got[1] != args[1] {
			t.Errorf("%s:\n got %s\nwant %s", typed, text, want)
		}
	}
}

func TestWhatIsWrongInAScript(t *testing.T) {
	for text, want := range map[string]string{
		"-n 6 prog":      `job.sh, line 2: "prog" is no option: the command is the script itself`,
		"--":             `job.sh, line 2: "--" is no option: the command is the script itself`,
		"--memm 3G":      "job.sh, line 2: unknown option --memm: did you mean --mem?",
		"--frobnicate":   "job.sh, line 2: unknown option --frobnicate",
		"-n":             "job.sh, line 2: option -n needs a value",
		"-e 'A=b":        "job.sh, line 2: a quotation mark ' is open",
		`-e "A=b\" -n 1`: `job.sh, line 2: a quotation mark " is open`,
	} {
		write(t, "#!/bin/sh\n#ZORILLA "+text+"\n", 0o644)
		if got, err := Merge(submit, run, []string{"zorilla", "submit", "job.sh"}); err == nil || err.Error() != want {
			t.Errorf("%s: got %q, %v, want %s", text, got, err, want)
		}
	}
}

// What a shell would take for parts of its words is no end of a line.
func TestScriptOfWindows(t *testing.T) {
	write(t, "#!/bin/bash\r\n#ZORILLA -n 1\r\necho x\r\n", 0o644)
	if s, err := Read("job.sh"); err == nil || s != nil || !strings.Contains(err.Error(), "dos2unix job.sh") {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestRead(t *testing.T) {
	for _, c := range []struct {
		text        string
		mode        os.FileMode
		interpreter string // "" = it has no options of its own
	}{
		{"#!/usr/bin/env python3\n#ZORILLA -n 1\n", 0o755, "/usr/bin/env python3"},
		{"#ZORILLA -n 1", 0o644, "sh"},
		{"#!\n#ZORILLA -n 1", 0o644, "sh"},
		{"#!/bin/sh\necho\n#ZORILLA -n 1", 0o755, ""},
		{"\n#ZORILLA -n 1", 0o755, ""},
		{"#!/bin/sh\n\x00\n#ZORILLA -n 1", 0o755, ""},
		{"\x7fELF#ZORILLA -n 1", 0o755, ""},
		{"", 0o755, ""},
		{"#" + strings.Repeat("\n", maxHead) + "#ZORILLA -n 1", 0o755, ""},
	} {
		write(t, c.text, c.mode)
		s, err := Read("job.sh")
		if err != nil || (s == nil) != (c.interpreter == "") {
			t.Errorf("%.40q: %+v, %v", c.text, s, err)
		} else if s != nil && (strings.Join(s.Interpreter, " ") != c.interpreter || s.Executable != (c.mode&0o111 != 0)) {
			t.Errorf("%.40q: %+v", c.text, s)
		}
	}
	write(t, "#!/bin/sh\n#ZORILLA -n 1\n#ZORILLA -e A=b\x00c\n", 0o755)
	if s, err := Read("job.sh"); s != nil || err == nil || !strings.HasPrefix(err.Error(), "job.sh, line 3: it has a zero byte") {
		t.Errorf("a line with a zero byte: %+v, %v", s, err)
	}
	for _, path := range []string{"nosuch", ".", "/dev/null"} {
		if s, err := Read(path); s != nil || err != nil {
			t.Errorf("%s: %+v, %v", path, s, err)
		}
	}
}

func FuzzSplit(f *testing.F) {
	for _, text := range []string{"", "-n 6 # six", `a\ b 'c d' "e \" f"`, "'", `\`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		words, err := split(text)
		total := 0
		for _, w := range words {
			total += len(w)
		}
		if total > len(text) || err != nil && words != nil {
			t.Errorf("%q: %q, %v", text, words, err)
		}
	})
}
