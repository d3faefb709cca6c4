package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/urfave/cli/v2"

	"zorilla/cmd/zorilla/jobfile"
	"zorilla/cmd/zorilla/script"
	"zorilla/jobs"
	"zorilla/jobs/process"
	"zorilla/jobs/work"
	"zorilla/transfer"
)

// arrayFlags make a job an array, or are about its script.
func arrayFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: script.TrustOption,
			Usage: "let the job file, or the #ZORILLA lines of the script, use options that only you may type otherwise: --on-end, --mount, files elsewhere"},
		&cli.BoolFlag{Name: jobfile.PrintOption, Usage: "print the job as a job file, with the options that are in force, instead of submitting it"},
		&cli.StringFlag{Name: "a", Aliases: []string{"array"},
			Usage: "run the command for each of `TASKS`, such as 1-10000%50 (at most 50 at once) or 1-9:2,12; its number is in ZORILLA_TASK_ID"},
		&cli.StringFlag{Name: "each-line", Usage: "run the command for each line of `FILE` (- is standard input), which takes the place of {} or comes last"},
	}
}

// makeArray makes an array of the job if the command line says so.
func (r *request) makeArray(c *cli.Context, stdin io.Reader) error {
	tasks, lines := c.String("a"), c.String("each-line")
	switch {
	case tasks == "" && lines == "":
		return nil
	case c.IsSet("n"):
		return errors.New("-n: an array has as many workers as are found: -a 1-100%8 has at most 8 at once")
	case c.String("stdin") != "" && c.String("stdin") != "none":
		return errors.New("--stdin: tasks of an array have no standard input: use --each-line")
	}
	r.spec.Array = &jobs.Array{}
	atOnce, err := 0, error(nil)
	if tasks != "" {
		if r.spec.Array.Tasks, atOnce, err = jobs.ParseArray(tasks); err != nil {
			return err
		}
	}
	if lines != "" {
		path, n, err := r.readLines(lines, stdin)
		if err != nil {
			return fmt.Errorf("--each-line: %w", err)
		}
		if tasks == "" {
			r.spec.Array.Tasks = []work.TaskIDs{{First: 1, Last: n, Step: 1}}
		}
		for _, run := range r.spec.Array.Tasks {
			if run.First < 1 || run.Last > n {
				return fmt.Errorf("-a %s: --each-line %s has lines 1 to %d", tasks, lines, n)
			}
		}
		r.spec.Array.Lines = true
		r.inputs = append(r.inputs, transfer.Input{Path: path, Name: jobs.ArrayLines})
	}
	r.spec.Min, r.spec.Max = 1, jobs.ArrayWorkers(r.spec.Array.Count(), atOnce)
	return nil
}

// readLines returns where the lines of --each-line are, and how many. Those of
// the standard input ("-"), or of a pipe, are kept until the request is closed.
func (r *request) readLines(name string, stdin io.Reader) (path string, n int, err error) {
	path = name
	if info, err := os.Stat(name); name != "-" && err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		f, err := os.Open(name) // <(COMMAND) of a shell, which can be read once
		if err != nil {
			return "", 0, err
		}
		defer f.Close()
		stdin, path = f, "-"
	}
	if path == "-" {
		if r.lines, err = os.CreateTemp("", "zorilla-lines-"); err != nil {
			return "", 0, err
		}
		if err := os.Remove(r.lines.Name()); err != nil {
			return "", 0, err
		}
		if _, err := io.Copy(r.lines, stdin); err != nil {
			return "", 0, fmt.Errorf("read %s: %w", name, err)
		}
		path = fmt.Sprintf("/proc/self/fd/%d", r.lines.Fd())
	}
	if n, err = countLines(path); err == nil && n == 0 {
		err = fmt.Errorf("%s has no lines", name)
	}
	return path, n, err
}

// countLines counts the lines of a file; the last one need not end. One that cannot be an
// argument is refused here, before any task has run.
func countLines(path string) (n int, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	for r := bufio.NewReaderSize(f, process.MaxLine+len("\r\n")); ; {
		line, err := r.ReadSlice('\n')
		if err != nil && err != io.EOF && err != bufio.ErrBufferFull {
			return 0, err
		}
		if len(line) > 0 {
			n++
		}
		line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
		switch {
		case bytes.IndexByte(line, 0) >= 0:
			return 0, fmt.Errorf("line %d has a zero byte: tr '\\0' '\\n' makes lines of what find -print0 prints", n)
		case len(line) > process.MaxLine:
			return 0, fmt.Errorf("line %d has more than %d bytes: put them into a file, and its name into the line", n, process.MaxLine)
		case err == io.EOF:
			return n, nil
		}
	}
}
