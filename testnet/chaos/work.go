package main

import (
	"bytes"
	"crypto/sha256"
	"flag"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// workMode is the first argument of this program as the worker of a job.
const workMode = "work"

// trailName is what workers leave behind.
const trailName = "sleep"

// program is what a worker does. All that it writes follows from this and from
// which rank, attempt or task it is, so that whoever checks it can tell each byte.
type program struct {
	key   string        // of the job; part of all that it writes
	lines int           // on standard output
	errs  int           // lines on standard error
	gap   time.Duration // between lines
	bulk  int           // bytes that follow at once
	in    bool          // it tells the checksum of its input
	lined bool          // each task has a line of its own
	stdin int           // bytes that rank 0 is fed, whose checksum it tells at last
	out   int           // bytes of an output file; 0 = none
	codes []int         // exit codes by rank or task, over and over
	flaky int           // exit code of the first attempt, after half of its lines; 0 = as the others
	die   bool          // it ends itself by SIGKILL
	sleep time.Duration // at last
	trail bool          // it leaves a process of another session behind
}

// args is the command line of a program.
func (p *program) args(self string) []string {
	codes := make([]string, len(p.codes))
	for i, c := range p.codes {
		codes[i] = strconv.Itoa(c)
	}
	return []string{self, workMode, "-key", p.key, "-lines", fmt.Sprint(p.lines), "-errs", fmt.Sprint(p.errs), "-gap", p.gap.String(), "-bulk", fmt.Sprint(p.bulk),
		fmt.Sprintf("-in=%t", p.in), fmt.Sprintf("-lined=%t", p.lined), "-stdin", fmt.Sprint(p.stdin), "-out", fmt.Sprint(p.out), "-codes", strings.Join(codes, ","), "-flaky", fmt.Sprint(p.flaky),
		fmt.Sprintf("-die=%t", p.die), "-sleep", p.sleep.String(), fmt.Sprintf("-trail=%t", p.trail)}
}

// parseProgram is the inverse of args, without the first two.
func parseProgram(args []string) (program, error) {
	var p program
	flags := flag.NewFlagSet(workMode, flag.ContinueOnError)
	flags.StringVar(&p.key, "key", "", "")
	flags.IntVar(&p.lines, "lines", 0, "")
	flags.IntVar(&p.errs, "errs", 0, "")
	flags.DurationVar(&p.gap, "gap", 0, "")
	flags.IntVar(&p.bulk, "bulk", 0, "")
	flags.BoolVar(&p.in, "in", false, "")
	flags.BoolVar(&p.lined, "lined", false, "")
	flags.IntVar(&p.stdin, "stdin", 0, "")
	flags.IntVar(&p.out, "out", 0, "")
	flags.IntVar(&p.flaky, "flaky", 0, "")
	flags.BoolVar(&p.die, "die", false, "")
	flags.DurationVar(&p.sleep, "sleep", 0, "")
	flags.BoolVar(&p.trail, "trail", false, "")
	codes := flags.String("codes", "", "")
	if err := flags.Parse(args); err != nil {
		return p, err
	}
	for c := range strings.SplitSeq(*codes, ",") {
		if c == "" {
			continue
		}
		n, err := strconv.Atoi(c)
		if err != nil {
			return p, err
		}
		p.codes = append(p.codes, n)
	}
	return p, nil
}

// who is one try of a rank, or a task, whose number is the rank then.
type who struct {
	rank, attempt int
	task          bool
}

func (w who) String() string {
	if w.task {
		return fmt.Sprintf("task %d", w.rank)
	}
	return fmt.Sprintf("rank %d attempt %d", w.rank, w.attempt)
}

// fails reports whether this is an attempt that is to be tried again.
func (p *program) fails(w who) bool { return p.flaky != 0 && w.attempt == 1 }

// code is the exit code.
func (p *program) code(w who) int {
	switch {
	case p.fails(w):
		return p.flaky
	case p.die:
		return 128 + int(syscall.SIGKILL)
	case len(p.codes) == 0:
		return 0
	}
	return p.codes[w.rank%len(p.codes)]
}

// said is what it writes to its standard output, line by line and then at once.
func (p *program) said(w who) (lines [][]byte, bulk []byte) {
	if p.in {
		lines = append(lines, fmt.Appendf(nil, "%s %v input %x\n", p.key, w, sha256.Sum256(p.input())))
	}
	n := p.lines
	if p.fails(w) {
		n /= 2
	}
	for i := range n {
		text := fmt.Sprintf("%s %v line %d of %d", p.key, w, i+1, p.lines)
		lines = append(lines, fmt.Appendf(nil, "%s %08x\n", text, crc32.ChecksumIEEE([]byte(text))))
	}
	if p.fails(w) {
		return lines, nil
	}
	if p.reads(w) {
		return lines, p.fed(p.feed())
	}
	return lines, text(fmt.Sprintf("%s %v bulk", p.key, w), p.bulk)
}

// reads reports whether it has standard input.
func (p *program) reads(w who) bool { return p.stdin > 0 && w.rank == 0 }

// feed is its standard input.
func (p *program) feed() []byte { return text(p.key+" stdin", p.stdin) }

// fed is what it tells of its standard input.
func (p *program) fed(b []byte) []byte {
	return fmt.Appendf(nil, "%s was fed %d bytes %x\n", p.key, len(b), sha256.Sum256(b))
}

// stdout is all of it.
func (p *program) stdout(w who) []byte {
	lines, bulk := p.said(w)
	return append(bytes.Join(lines, nil), bulk...)
}

// stderr is what it writes to its standard error.
func (p *program) stderr(w who) (b []byte) {
	for i := range p.errs {
		b = fmt.Appendf(b, "%s %v complains %d\n", p.key, w, i+1)
	}
	return b
}

// line is that of a task, without its end.
func (p *program) line(task int) string { return fmt.Sprintf("%s wants line %d", p.key, task) }

// input is the content of the file "data" that the job brings.
func (p *program) input() []byte { return text(p.key+" input", 300_000) }

// file is the output file of a rank.
func (p *program) file(w who) (name string, content []byte) {
	return fmt.Sprintf("out-%d", w.rank), text(fmt.Sprintf("%s %v file", p.key, w), p.out)
}

// text is so many bytes of lines that differ.
func text(seed string, size int) []byte {
	b := make([]byte, 0, size+64)
	for i := 0; len(b) < size; i++ {
		b = fmt.Appendf(b, "%s %d\n", seed, i)
	}
	return b[:size]
}

// workMain is a worker. It returns its exit code.
func workMain(args []string) int {
	p, err := parseProgram(args)
	if err == nil {
		var code int
		if code, err = p.run(); err == nil {
			return code
		}
	}
	fmt.Fprintln(os.Stderr, "chaos worker:", err)
	return 99
}

func (p *program) run() (int, error) {
	if p.sleep > 0 { // SIGTERM must end a sleeper politely
		stop := make(chan os.Signal, 1)
		signal.Notify(stop, syscall.SIGTERM)
		go func() { <-stop; os.Exit(98) }()
	}
	var w who
	var err1, err2 error
	if id := os.Getenv("ZORILLA_TASK_ID"); id != "" {
		w.task = true
		w.rank, err1 = strconv.Atoi(id)
	} else {
		w.rank, err1 = strconv.Atoi(os.Getenv("ZORILLA_RANK"))
		w.attempt, err2 = strconv.Atoi(os.Getenv("ZORILLA_ATTEMPT"))
	}
	if err1 != nil || err2 != nil {
		return 0, fmt.Errorf("the environment does not tell who I am: %v, %v", err1, err2)
	}
	if p.in {
		if b, err := os.ReadFile("data"); err != nil || !bytes.Equal(b, p.input()) {
			return 0, fmt.Errorf("the input is %d bytes of something else: %v", len(b), err)
		}
	}
	if line := os.Getenv("ZORILLA_TASK_LINE"); p.lined && line != p.line(w.rank) {
		return 0, fmt.Errorf("the line of task %d is %q", w.rank, line)
	}
	if _, err := os.Stderr.Write(p.stderr(w)); err != nil {
		return 0, err
	}
	if p.trail {
		left := exec.Command(trailName, "86400")
		left.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := left.Start(); err != nil {
			return 0, err
		}
	}
	lines, bulk := p.said(w)
	for _, line := range lines {
		if _, err := os.Stdout.Write(line); err != nil {
			return 0, err
		}
		time.Sleep(p.gap)
	}
	if p.reads(w) {
		b, err := io.ReadAll(os.Stdin)
		if err != nil {
			return 0, err
		}
		bulk = p.fed(b)
	}
	if _, err := os.Stdout.Write(bulk); err != nil {
		return 0, err
	}
	if p.out > 0 && !p.fails(w) {
		name, content := p.file(w)
		if err := os.WriteFile(filepath.Clean(name), content, 0o644); err != nil {
			return 0, err
		}
	}
	time.Sleep(p.sleep)
	if p.die && !p.fails(w) {
		return 0, syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	return p.code(w), nil
}
