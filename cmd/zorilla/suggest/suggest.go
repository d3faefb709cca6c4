// Package suggest has suggestions for a command that does not work: what the user may have
// meant, and what differs from programs that run where they are typed.
package suggest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"zorilla/transfer"
)

// Job is the command line of a job, as it was typed.
type Job struct {
	Args    []string // the command and its arguments
	Inputs  []string // of -i
	Outputs []string // of -o
	Sent    []string // paths that are sent along, and their names at the worker
	Time    string   // of -t, "" = none
}

// Failed reports what may have been meant by a job that ended with a code.
func Failed(j Job, code int) []string {
	if code == 126 || code == 127 { // it could not be executed, or was not found
		if text := OwnCopy(j.Args[0]); text != "" {
			return []string{text}
		}
	}
	return NotSent(j)
}

// Expanded reports a pattern that the shell has expanded, so that the second file
// stands where the command should; "" = there is none.
func Expanded(j Job) string {
	first := j.Args[0]
	if info, err := os.Stat(first); err != nil || info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
		return ""
	}
	dir, ext := filepath.Dir(first), filepath.Ext(first)
	for _, option := range []struct {
		name   string
		values []string
	}{{"-i", j.Inputs}, {"-o", j.Outputs}} {
		n := len(option.values)
		if n == 0 || filepath.Dir(option.values[n-1]) != dir {
			continue
		}
		if same := ext != "" && filepath.Ext(option.values[n-1]) == ext; same || slices.Contains(j.Args, "--") {
			if !same {
				ext = ""
			}
			return fmt.Sprintf("%s stands where the command should: if the shell has expanded a pattern before it, quote it, as in %s '%s'",
				first, option.name, filepath.Join(dir, "*"+ext))
		}
	}
	return ""
}

// Command reports a file in the current directory that the bare name of a command
// does not mean, if this machine has no other command of that name; "" = there is none.
func Command(name string) string {
	if program, rest, ok := strings.Cut(strings.TrimSpace(name), " "); ok && rest != "" && !strings.Contains(program, "/") {
		if _, err := os.Stat(name); err != nil {
			return fmt.Sprintf("%q is looked for as a program of that name: write its words apart, or sh -c %q", name, name)
		}
	}
	if strings.Contains(name, "/") {
		return ""
	}
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() {
		return ""
	}
	if _, err := exec.LookPath(name); err == nil {
		return ""
	}
	text := fmt.Sprintf("%s is looked up on the worker's machine: ./%s sends along the file that is here", name, name)
	if info.Mode()&0o111 == 0 {
		text += fmt.Sprintf(", once it is executable (chmod +x %s)", name)
	}
	return text
}

// maxTold bounds the files that are told.
const maxTold = 3

// NotSent reports arguments that name files or directories of this machine which are
// not sent along.
func NotSent(j Job) (list []string) {
	for _, arg := range j.Args[1:] {
		if _, value, found := strings.Cut(arg, "="); found && strings.HasPrefix(arg, "-") {
			arg = value
		}
		name := filepath.Clean(arg)
		if arg == "" || strings.HasPrefix(arg, "-") || filepath.IsAbs(arg) || strings.Trim(name, "./") == "" || sent(j, name) {
			continue
		}
		info, err := os.Stat(arg)
		if err != nil {
			continue
		}
		kind := "file"
		if info.IsDir() {
			kind = "directory"
		}
		text := fmt.Sprintf("%s is a %s here and is not sent along: -i %s does that", arg, kind, arg)
		if !slices.Contains(list, text) && len(list) < maxTold {
			list = append(list, text)
		}
	}
	return list
}

// Time says that a time without a unit is in seconds; "" = it has a unit, or there is none.
func Time(s string) string {
	if s == "" || strings.Trim(s, "0123456789") != "" {
		return ""
	}
	noun := "seconds"
	if s == "1" {
		noun = "second"
	}
	return fmt.Sprintf("-t %s is %s %s: -t %sm is as many minutes, which Slurm and PBS mean by it", s, s, noun, s)
}

// Columns reports a word that other programs replace by a column of a line; "" = there is
// none.
func Columns(args []string) string {
	for _, a := range args {
		for n := '1'; n <= '9'; n++ {
			if column := "{" + string(n) + "}"; strings.Contains(a, column) {
				return column + " in the command stays as it is: --each-line replaces {} by the whole line; a shell splits it: sh -c 'echo $1 $2' - {}"
			}
		}
	}
	return ""
}

// Environments reports virtual environments of Python that are sent along: their scripts, and
// what activates them, name the directory that they were made in.
func Environments(j Job) (list []string) {
	for _, in := range j.Inputs {
		config, err := os.ReadFile(filepath.Join(in, "pyvenv.cfg"))
		activate, _ := os.ReadFile(filepath.Join(in, "bin", "activate"))
		if err != nil || len(config) == 0 || len(list) == maxTold {
			continue
		}
		abs, err := filepath.Abs(in)
		if real, err := filepath.EvalSymlinks(abs); err == nil {
			abs = real
		}
		if err != nil || len(activate) > 0 && !bytes.Contains(activate, []byte(abs)) { // it can be moved
			continue
		}
		list = append(list, fmt.Sprintf("%s is a virtual environment made for %s, which its bin/activate and its scripts look for: "+
			"run %s/bin/python instead, or show it there with --mount %s",
			in, abs, filepath.Clean(in), abs))
	}
	return list
}

// InTheWay reports files in a directory that output files may have the names of, and which
// then stay as they are.
func InTheWay(j Job, into string) []string {
	var there []string
	for _, glob := range j.Outputs {
		found, _ := transfer.Glob(filepath.Join(into, glob)) // the patterns were checked
		there = append(there, found...)
	}
	slices.Sort(there)
	there = slices.DeleteFunc(slices.Compact(there), func(name string) bool {
		info, err := os.Lstat(name)
		return err != nil || info.IsDir()
	})
	if len(there) == 0 {
		return nil
	}
	text := strings.Join(there[:min(len(there), maxTold)], ", ")
	verb := "exists"
	if n := len(there) - maxTold; n > 0 {
		text, verb = fmt.Sprintf("%s and %d more", text, n), "exist"
	} else if len(there) > 1 {
		verb = "exist"
	}
	return []string{fmt.Sprintf("%s %s already: output files of these names are not fetched after the job, unless with --force", text, verb)}
}

// sent reports whether a worker has a file of that name, or may make it.
func sent(j Job, name string) bool {
	for _, s := range j.Sent {
		if s = filepath.Clean(s); s == name || strings.HasPrefix(name, s+"/") || strings.HasPrefix(s, name+"/") {
			return true
		}
	}
	return transfer.MatchOutput(j.Outputs, name)
}

// OwnCopy reports how a command that is named by its absolute path is sent along, if
// this machine has such a file below its users' directories; "" = it has not.
func OwnCopy(command string) string {
	if !filepath.IsAbs(command) {
		return ""
	}
	for _, dir := range []string{"/bin", "/sbin", "/usr", "/lib", "/lib64", "/etc", "/proc", "/dev", "/sys"} {
		if strings.HasPrefix(command, dir+"/") {
			return ""
		}
	}
	info, err := os.Stat(command)
	if err != nil || !info.Mode().IsRegular() {
		return ""
	}
	here, err := os.Getwd()
	if err != nil {
		return ""
	}
	name, err := filepath.Rel(here, command)
	if err != nil {
		return ""
	}
	if filepath.IsLocal(name) {
		name = "./" + name
	}
	return fmt.Sprintf("an absolute path is one of the worker's machine: %s sends along the file that is here", name)
}
