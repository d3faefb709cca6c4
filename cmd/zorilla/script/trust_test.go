package script

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

// judged are options as of run, with those that only a user may have.
var judged = &cli.Command{Name: "run", Flags: append(slices.Clone(run.Flags),
	&cli.StringSliceFlag{Name: "i", Aliases: []string{"input"}}, &cli.StringSliceFlag{Name: "mount"}, &cli.StringFlag{Name: "on-end"},
	&cli.StringFlag{Name: "into"}, &cli.BoolFlag{Name: "force"}, &cli.StringFlag{Name: "key"}, &cli.StringFlag{Name: "stdin"}, &cli.StringFlag{Name: "each-line"},
	&cli.StringFlag{Name: "net"}, &cli.StringFlag{Name: "node"}, &cli.StringFlag{Name: "later"}, &cli.BoolFlag{Name: TrustOption})}

// A script is somebody else's word: what would have its user's rights is refused, unless she says
// that it may.
func TestScriptsHaveNoRights(t *testing.T) {
	home, work, elsewhere := t.TempDir(), t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	write(t, "", 0o644)
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"data", "linked", ".git", home + "/.ssh", home + "/docs", home + "/bin", home + "/nodes", home + "/nodes/a"} {
		err = errors.Join(err, os.Mkdir(d, 0o755))
	}
	for _, f := range []string{"in.txt", "data/x", ".git/config", elsewhere + "/key", home + "/.ssh/id", work + "/beside", home + "/docs/x", home + "/bin/x", home + "/nodes/a/identity.key", home + "/nodes/a/secret"} {
		err = errors.Join(err, os.WriteFile(f, []byte("x\n"), 0o644))
	}
	err = errors.Join(err, os.Symlink(elsewhere+"/key", "out.txt"), os.Symlink("in.txt", "inner"), os.Symlink("../../../../../../../../../../.."+elsewhere+"/key", "linked/key"), os.Symlink(elsewhere, "away"))
	if err != nil {
		t.Fatal(err)
	}
	check := func(script string, lines []string, may bool) {
		t.Helper()
		for _, words := range lines {
			if err := os.WriteFile(script, []byte("#!/bin/sh\n#ZORILLA "+words+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			option, _, _ := strings.Cut(strings.Fields(words)[0], "=")
			_, err := Merge(judged, submit, []string{"zorilla", "run", script})
			if may != (err == nil) || err != nil && (!strings.Contains(err.Error(), ", line 2: ") || !strings.Contains(err.Error(), option) || !strings.Contains(err.Error(), "--trust-script") || strings.Contains(err.Error(), "\n")) {
				t.Errorf("%s: %v", words, err)
			}
			_, err = Merge(judged, submit, []string{"zorilla", "run", "--trust-script", script})
			if err != nil {
				t.Errorf("%s, trusted: %v", words, err)
			}
			if _, err = Merge(judged, submit, []string{"zorilla", "run", "--trust-script=false", script}); may != (err == nil) && option != "--trust-script" { // typed wins
				t.Errorf("%s, not trusted: %v", words, err)
			}
		}
	}
	check("job.sh", []string{
		"-n 6 --mem 2G", "-o 'part-*'", "-o out.zarr", "-e A=b", "--net none", "--net=job", "-i in.txt", "-i in.txt:name", "-i data", "-i 'data/*'",
		"-i inner", "-i " + dir + "/in.txt", "-i nosuch", "--stdin none", "--stdin in.txt", "--each-line -", "--each-line in.txt",
	}, true)
	check("job.sh", []string{
		"--on-end id", "--on-end=id", "--mount /home:ro", "--into x", "--force", "--force=true", "--key k", "--node http://evil/?token=t", "-e HOME", "--net host",
		"-o .bashrc", "-o '.config/*'", "-o 'a/.x'", "-i " + elsewhere + "/key:k", "-i out.txt", "-i .", "-i linked", "-i away", "-i away/key", "-i '" + elsewhere + "/*'", "-i .git",
		"-i " + home + "/.ssh/id", "-i ~:x -i " + home, "-i /", "-i ..", "--stdin " + elsewhere + "/key", "--stdin=out.txt", "--each-line out.txt", "--input=out.txt", "--trust-script", "--trust-script --on-end id",
	}, false)
	// Its own directory counts, and its user's home does not become one by being the current directory.
	script := filepath.Join(work, "job.sh")
	check(script, []string{"-i " + work + "/beside", "-i in.txt"}, true)
	t.Chdir(home)
	check(script, []string{"-i docs", "-i docs/x"}, true)
	check(script, []string{"-i .", "-i .ssh", "-i .ssh/id:k", "-i '.s*'", "-i bin/x", "-i nodes/a/secret", "-i nodes"}, false)
	// What was typed wins, and is the user's.
	if err := os.WriteFile(script, []byte("#ZORILLA --on-end id\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if args, err := Merge(judged, submit, []string{"zorilla", "run", "--on-end", "mine", script}); err != nil || slices.Contains(args, "id") {
		t.Errorf("%q, %v", args, err)
	}
	// An option that nobody has judged is for nobody.
	if err := os.WriteFile(script, []byte("#ZORILLA --later x\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Merge(judged, submit, []string{"zorilla", "run", script}); err == nil {
		t.Error("an option of later stands in a script")
	}
}
