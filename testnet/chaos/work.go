package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"zorilla/jobs"
)

// workMode is the first argument of this program as the worker of a job.
const workMode = "work"

// trailName is what workers leave behind.
const trailName = "sleep"

// program is what a worker does. All that it writes follows from this and from
// which rank, attempt or task it is, so that whoever checks it can tell each byte.
type program struct {
	Key   string        // of the job; part of all that it writes
	Lines int           // on standard output
	Errs  int           // lines on standard error
	Gap   time.Duration // between lines
	Bulk  int           // bytes that follow at once
	In    int           // bytes of its input, whose checksum it tells; 0 = none
	Lined bool          // each task has a line of its own
	Stdin int           // bytes that rank 0 is fed, whose checksum it tells at last
	Out   int           // bytes of an output file; 0 = none
	Codes []int         // exit codes by rank or task, over and over
	Flaky int           // exit code of the first attempt, after half of its lines; 0 = as the others
	Die   bool          // it ends itself by SIGKILL
	Gate  string        // a file for which it waits after its lines; "" = none
	Sleep time.Duration // at last
	Trail bool          // it leaves a process of another session behind
	// Hostile is how rank 0 is that after its lines, until it is ended; "" = not.
	Hostile string `json:",omitempty"`
}

// args is the command line of a program.
func (p *program) args(self string) []string {
	b, err := json.Marshal(p)
	if err != nil {
		panic(err) // it is plain data
	}
	return []string{self, workMode, string(b)}
}

// parseProgram is the inverse of args, without the first two. The line of a task
// may follow.
func parseProgram(args []string) (p program, err error) {
	if len(args) == 0 {
		return p, errors.New("no program is given")
	}
	return p, json.Unmarshal([]byte(args[0]), &p)
}

// who is one try of a rank at a host, or a task, whose number is the rank then.
type who struct {
	rank, attempt int
	host          string
	task          bool
}

// ranked is who ran as a worker of a job.
func ranked(k *jobs.WorkerStatus) who { return who{rank: k.Rank, attempt: k.Attempt, host: k.Name} }

func (w who) String() string {
	if w.task {
		return fmt.Sprintf("task %d", w.rank)
	}
	return fmt.Sprintf("rank %d attempt %d at %s", w.rank, w.attempt, w.host)
}

// fails reports whether this is an attempt that is to be tried again.
func (p *program) fails(w who) bool { return p.Flaky != 0 && w.attempt == 1 }

// code is the exit code.
func (p *program) code(w who) int {
	switch {
	case p.fails(w):
		return p.Flaky
	case p.isHostile(w):
		return p.stopped()
	case p.Die:
		return 128 + int(syscall.SIGKILL)
	case len(p.Codes) == 0:
		return 0
	}
	return p.Codes[w.rank%len(p.Codes)]
}

// said is what it writes to its standard output, line by line and then at once.
func (p *program) said(w who) (lines [][]byte, bulk []byte) {
	if p.In > 0 {
		lines = append(lines, fmt.Appendf(nil, "%s %v input %x\n", p.Key, w, sha256.Sum256(p.input())))
	}
	n := p.Lines
	if p.fails(w) {
		n /= 2
	}
	for i := range n {
		text := fmt.Sprintf("%s %v line %d of %d", p.Key, w, i+1, p.Lines)
		lines = append(lines, fmt.Appendf(nil, "%s %08x\n", text, crc32.ChecksumIEEE([]byte(text))))
	}
	if p.fails(w) {
		return lines, nil
	}
	if p.reads(w) {
		return lines, p.fed(p.feed())
	}
	return lines, text(fmt.Sprintf("%s %v bulk", p.Key, w), p.Bulk)
}

// reads reports whether it has standard input.
func (p *program) reads(w who) bool { return p.Stdin > 0 && w.rank == 0 }

// feed is its standard input.
func (p *program) feed() []byte { return text(p.Key+" stdin", p.Stdin) }

// fed is what it tells of its standard input.
func (p *program) fed(b []byte) []byte {
	return fmt.Appendf(nil, "%s was fed %d bytes %x\n", p.Key, len(b), sha256.Sum256(b))
}

// stdout is all of it.
func (p *program) stdout(w who) []byte {
	lines, bulk := p.said(w)
	if p.Hostile == wayBomb && p.isHostile(w) {
		bulk = append(bulk, bombRefused+"\n"...)
	}
	return append(bytes.Join(lines, nil), bulk...)
}

// stderr is what it writes to its standard error.
func (p *program) stderr(w who) (b []byte) {
	for i := range p.Errs {
		b = fmt.Appendf(b, "%s %v complains %d\n", p.Key, w, i+1)
	}
	return b
}

// line is that of a task, without its end.
func (p *program) line(task int) string { return fmt.Sprintf("%s wants line %d", p.Key, task) }

// input is the content of the file "data" that the job brings: nothing repeats.
func (p *program) input() []byte {
	b := make([]byte, p.In)
	_, _ = rand.NewChaCha8(sha256.Sum256([]byte(p.Key))).Read(b) // it never fails
	return b
}

// file is the output file of a rank.
func (p *program) file(w who) (name string, content []byte) {
	return fmt.Sprintf("out-%d", w.rank), text(fmt.Sprintf("%s %v file", p.Key, w), p.Out)
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

// oneself is who this process is.
func oneself() (w who, err error) {
	if id := os.Getenv("ZORILLA_TASK_ID"); id != "" {
		w.task = true
		w.rank, err = strconv.Atoi(id)
		return w, err
	}
	var err1, err2, err3 error
	w.rank, err1 = strconv.Atoi(os.Getenv("ZORILLA_RANK"))
	w.attempt, err2 = strconv.Atoi(os.Getenv("ZORILLA_ATTEMPT"))
	w.host, err3 = os.Hostname()
	return w, errors.Join(err1, err2, err3)
}

func (p *program) run() (int, error) {
	if p.Sleep > 0 { // SIGTERM must end a sleeper politely
		stop := make(chan os.Signal, 1)
		signal.Notify(stop, syscall.SIGTERM)
		go func() { <-stop; os.Exit(98) }()
	}
	w, err := oneself()
	if err != nil {
		return 0, fmt.Errorf("the environment does not tell who I am: %w", err)
	}
	if p.In > 0 {
		if b, err := os.ReadFile("data"); err != nil || !bytes.Equal(b, p.input()) {
			return 0, fmt.Errorf("the input is %d bytes of something else: %v", len(b), err)
		}
	}
	if line := os.Getenv("ZORILLA_TASK_LINE"); p.Lined && line != p.line(w.rank) {
		return 0, fmt.Errorf("the line of task %d is %q", w.rank, line)
	}
	if _, err := os.Stderr.Write(p.stderr(w)); err != nil {
		return 0, err
	}
	if p.Trail {
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
		time.Sleep(p.Gap)
	}
	for p.Gate != "" {
		if _, err := os.Stat(p.Gate); err == nil {
			break
		}
		time.Sleep(50 * time.Millisecond)
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
	if p.isHostile(w) {
		return 0, p.misbehave()
	}
	if p.Out > 0 && !p.fails(w) {
		name, content := p.file(w)
		if err := os.WriteFile(filepath.Clean(name), content, 0o644); err != nil {
			return 0, err
		}
	}
	time.Sleep(p.Sleep)
	if p.Die && !p.fails(w) {
		return 0, syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	return p.code(w), nil
}
