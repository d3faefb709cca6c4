package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"zorilla/cmd/zorilla/config"
)

// writeConfig makes the user's file.
func writeConfig(t *testing.T, text string) config.Places {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return config.Places{User: path}
}

// Every option may stand in a file, but for those that say what one call is about.
func TestEveryOptionMayStandInAFile(t *testing.T) {
	once := map[string]bool{}
	for _, name := range []string{"cancel all", "cancel name", "resize release", "cache prune", "drain undo"} {
		once[name] = true
	}
	for _, name := range []string{"run", "submit", "check"} {
		once[name+" trust-script"], once[name+" print-file"] = true, true
	}
	once["rerun as-submitted"] = true
	keys := 0 // of submissions, whichever commands make these
	tried := 0
	for _, cmd := range newApp(&console{}, nil).Commands {
		if !config.Takes(cmd) {
			continue
		}
		for _, f := range cmd.VisibleFlags() {
			if f.Names()[0] == "key" {
				once[cmd.Name+" key"] = true
				keys++
			}
			value := `"text"`
			switch f.(type) {
			case *cli.BoolFlag:
				value = "true"
			case *cli.IntFlag, *cli.Float64Flag, *cli.IntSliceFlag:
				value = "7"
			case *cli.DurationFlag:
				value = `"7m"`
			case *cli.StringSliceFlag:
				value = `["a", "b"]`
			}
			for _, name := range f.Names() {
				tried++
				_, err := config.Read(writeConfig(t, fmt.Sprintf("[%s]\n%s = %s\n", cmd.Name, name, value)), newApp(&console{}, nil))
				if refused := err != nil && strings.HasSuffix(err.Error(), "is of one call, and no default: type it"); refused != once[cmd.Name+" "+f.Names()[0]] || err != nil && !refused {
					t.Errorf("[%s] %s: %v", cmd.Name, name, err)
				}
			}
		}
	}
	if tried < 200 || keys < 3 {
		t.Errorf("only %d options, %d keys", tried, keys)
	}
}

// Commands that others run, and those that help with a broken file, do not read one.
func TestWhoReadsNoFile(t *testing.T) {
	places := writeConfig(t, "broken")
	for _, line := range []string{"version", "man ps", "completion bash", "help", "ps --help", "lead --help", "rsh --help", "--version", "__complete ps -"} {
		var out, errs bytes.Buffer
		con := &console{stdout: &out, stderr: &errs, places: places}
		if code := run(t.Context(), con, nil, append([]string{"zorilla"}, strings.Fields(line)...)); code != 0 || errs.Len() > 0 {
			t.Errorf("%s: %d, %s", line, code, &errs)
		}
	}
	page, err := os.ReadFile("../../docs/config.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(page), "and what may have been meant;\n")
	list, _, _ = strings.Cut(list, "go on.")
	for _, cmd := range append(newApp(&console{}, nil).Commands, &cli.Command{Name: "help"}) {
		if !cmd.Hidden && (cmd.Name == doctorName || !config.Takes(cmd)) != strings.Contains(list, "`"+cmd.Name+"`") {
			t.Errorf("%s is not told right in docs/config.md: %s", cmd.Name, list)
		}
	}
	// Where doctor finds no node, the file may be why.
	var out, errs bytes.Buffer
	con := &console{stdout: &out, stderr: &errs, places: places}
	if code := run(t.Context(), con, nil, []string{"zorilla", "doctor", "--node", "/no/such/socket"}); code != exitFailure || !strings.Contains(errs.String(), "config.toml:1: ") || !strings.Contains(errs.String(), "\nzorilla: no node is running at /no/such/socket") {
		t.Errorf("doctor: %d, %s", code, &errs)
	}
	for _, line := range []string{"ps", "run true", "node", "dev", "config", "exec last ls"} {
		var out, errs bytes.Buffer
		con := &console{stdout: &out, stderr: &errs, places: places}
		if code := run(t.Context(), con, nil, append([]string{"zorilla"}, strings.Fields(line)...)); code != exitUsage || !strings.Contains(errs.String(), "config.toml:1: ") {
			t.Errorf("%s: %d, %s", line, code, &errs)
		}
	}
}
