package workertest

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Self is what a program sees of itself, and what it can do.
type Self struct {
	Args           []string // without its name
	Dir            string   // where it begins
	Getenv         func(name string) string
	Stdin          io.Reader
	Stdout, Stderr io.Writer

	Trap   func() <-chan struct{}      // handles SIGTERM from now on
	Handle func(signal int) <-chan int // handles a signal from now on
	Sleep  func()                      // does not return
	Spawn  func(name string)           // starts a child with the same streams, and a session of its own
	Hold   func(bytes int)             // takes so much memory
	Fill   func(bytes int)             // has so much in files
}

// Program returns its exit code, or minus the signal that ends it.
type Program func(s *Self) int

// Programs returns the programs of the suite, by their names.
func Programs() map[string]Program {
	return map[string]Program{
		"exit": func(s *Self) int { return number(s.Args[0]) },
		"say": func(s *Self) int {
			fmt.Fprint(s.Stdout, "out\n")
			fmt.Fprint(s.Stderr, "err\n")
			fmt.Fprint(s.Stdout, strings.Join(s.Args, " "))
			return 0
		},
		"env":      env,
		"idle":     func(s *Self) int { fmt.Fprintln(s.Stdout, "ready"); s.Sleep(); return 0 },
		"polite":   polite,
		"stubborn": func(s *Self) int { s.Trap(); fmt.Fprintln(s.Stdout, "ready"); s.Sleep(); return 0 },
		"parent":   func(s *Self) int { s.Spawn("noise"); return number(s.Args[0]) },
		"noise":    noise,
		"shell":    func(s *Self) int { s.Spawn("polite"); s.Sleep(); return 0 },
		"hold":     func(s *Self) int { s.Hold(number(s.Args[0])); s.Sleep(); return 0 },
		"fill":     func(s *Self) int { s.Fill(number(s.Args[0])); s.Sleep(); return 0 },
		"filler":   filler,
		"flood":    flood,
		"spouter":  spouter,
		"cat":      cat,
		"lines":    lines,
		"listen":   listen,
		"file":     file,
		"task":     task,
		"trouble":  trouble,
		"leaver":   leaver,
	}
}

// filler is, by the ID of its task: too large, good.
func filler(s *Self) int {
	if s.Getenv("ZORILLA_TASK_ID") == "1" {
		s.Fill(24 << 20)
		s.Sleep()
	}
	fmt.Fprintln(s.Stdout, "fine")
	return 0
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 99
	}
	return n
}

func env(s *Self) int {
	for _, name := range s.Args {
		fmt.Fprintf(s.Stdout, "%s=%s\n", name, s.Getenv(name))
	}
	return 0
}

// polite ends on SIGTERM with a code of its own, after its last words.
func polite(s *Self) int {
	term := s.Trap()
	fmt.Fprintln(s.Stdout, "ready")
	<-term
	fmt.Fprintln(s.Stdout, "saved")
	return 7
}

func noise(s *Self) int {
	for {
		if _, err := fmt.Fprintln(s.Stdout, "noise"); err != nil {
			return 1
		}
	}
}

// flood writes so many bytes, of which no two stretches are alike.
func flood(s *Self) int {
	fmt.Fprintln(s.Stderr, "begun")
	out := bufio.NewWriterSize(s.Stdout, 8<<10)
	for n := 0; n < number(s.Args[0]); n += 8 {
		if _, err := fmt.Fprintf(out, "%07x\n", n/8); err != nil {
			return 1
		}
	}
	if out.Flush() != nil {
		return 1
	}
	fmt.Fprintln(s.Stderr, "all")
	return 0
}

// spouter is, by the ID of its task: endless, within 12 KiB, a little beyond them.
func spouter(s *Self) int {
	id := s.Getenv("ZORILLA_TASK_ID")
	if id == "1" {
		return noise(s)
	}
	fmt.Fprint(s.Stdout, strings.Repeat("noise\n", 2<<10))
	if id == "3" {
		fmt.Fprint(s.Stdout, "more")
	}
	return 0
}

func cat(s *Self) int {
	if _, err := io.Copy(s.Stdout, s.Stdin); err != nil {
		return 1
	}
	fmt.Fprintln(s.Stdout, "end")
	return 0
}

// lines gives each line back as soon as it comes.
func lines(s *Self) int {
	for in := bufio.NewScanner(s.Stdin); in.Scan(); {
		fmt.Fprintln(s.Stdout, in.Text())
	}
	return 0
}

// listen waits for signal 10.
func listen(s *Self) int {
	told := s.Handle(10)
	fmt.Fprintln(s.Stdout, "ready")
	fmt.Fprintln(s.Stdout, "told", <-told)
	return 4
}

func file(s *Self) int {
	for _, name := range s.Args {
		if err := os.WriteFile(filepath.Join(s.Dir, name), []byte(name), 0o644); err != nil {
			fmt.Fprintln(s.Stderr, err)
			return 1
		}
	}
	return 0
}

// task reports which task it is; its arguments are the codes, by ID.
func task(s *Self) int {
	id := s.Getenv("ZORILLA_TASK_ID")
	fmt.Fprintf(s.Stdout, "%s of %s\n", id, s.Getenv("ZORILLA_TASK_COUNT"))
	fmt.Fprintf(s.Stderr, "err %s\n", id)
	return number(s.Args[number(id)-1])
}

// trouble is, by the ID of its task: killed, too large, endless, leaves a child
// behind, good.
func trouble(s *Self) int {
	switch s.Getenv("ZORILLA_TASK_ID") {
	case "1":
		return -int(syscall.SIGKILL)
	case "2":
		s.Hold(400 << 20)
		s.Sleep()
	case "3":
		s.Sleep()
	case "4":
		s.Spawn("idle")
		return 0
	}
	fmt.Fprintln(s.Stdout, "fine")
	return 0
}

// leaver says what it finds where it begins, and in the input that it is told;
// then it leaves a file there, and one for temporary things. Task 2 waits.
func leaver(s *Self) int {
	entries, err := os.ReadDir(s.Dir)
	if err != nil {
		return 1
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	slices.Sort(names)
	temporary, err := os.ReadDir(s.Getenv("TMPDIR"))
	if err != nil {
		return 2
	}
	input, err := os.ReadFile(filepath.Join(s.Dir, s.Args[0]))
	if err != nil {
		return 3
	}
	id := s.Getenv("ZORILLA_TASK_ID")
	fmt.Fprintf(s.Stdout, "%s+%d: %s\n", strings.Join(names, ","), len(temporary), input)
	fmt.Fprintln(s.Stderr, "left", id)
	if os.WriteFile(filepath.Join(s.Dir, "out"), []byte("of "+id), 0o644) != nil {
		return 4
	}
	if os.WriteFile(filepath.Join(s.Getenv("TMPDIR"), "x"), nil, 0o644) != nil {
		return 5
	}
	return 0
}

const prefix = "workertest:"

// Main must be called first in TestMain of tests whose workers are processes. In
// such a process it runs the program and exits; elsewhere it returns at once.
func Main() {
	if len(os.Args) < 2 || !strings.HasPrefix(os.Args[1], prefix) {
		return
	}
	program := Programs()[strings.TrimPrefix(os.Args[1], prefix)]
	code := 98
	if dir, err := os.Getwd(); err == nil && program != nil {
		code = program(self(dir))
	}
	if code < 0 {
		_ = syscall.Kill(os.Getpid(), syscall.Signal(-code))
		sleep()
	}
	syscall.Exit(code) // not os.Exit, which under the race detector waits for a second
}

// Command returns the arguments of a process that Main makes a program.
func Command(exe, program string, args ...string) []string {
	return append([]string{exe, prefix + program}, args...)
}

func sleep() {
	for {
		time.Sleep(time.Hour)
	}
}

// self is what a process sees of itself.
func self(dir string) *Self {
	return &Self{
		Args: os.Args[2:], Dir: dir, Getenv: os.Getenv, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Sleep: sleep,
		Trap: func() <-chan struct{} {
			all, term := make(chan os.Signal, 1), make(chan struct{})
			signal.Notify(all, syscall.SIGTERM)
			go func() { <-all; close(term) }()
			return term
		},
		Handle: func(number int) <-chan int {
			all, numbers := make(chan os.Signal, 1), make(chan int)
			signal.Notify(all, syscall.Signal(number))
			go func() {
				for s := range all {
					numbers <- int(s.(syscall.Signal))
				}
			}()
			return numbers
		},
		Spawn: func(name string) {
			args := Command(os.Args[0], name)
			cmd := exec.Command(args[0], args[1:]...)
			cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = os.Stdout, os.Stderr, &syscall.SysProcAttr{Setsid: true}
			if err := cmd.Start(); err != nil {
				fmt.Fprintln(os.Stderr, err)
				syscall.Exit(97)
			}
		},
		Hold: func(bytes int) {
			b := make([]byte, bytes)
			for i := 0; i < len(b); i += 4096 {
				b[i] = 1
			}
			go func() { sleep(); _ = b[0] }()
		},
		Fill: func(bytes int) {
			for i := range 2 { // in both of its directories, each of them within the limit
				dir := []string{".", os.Getenv("TMPDIR")}[i]
				if err := os.WriteFile(filepath.Join(dir, "fill"), make([]byte, bytes/2), 0o644); err != nil {
					fmt.Fprintln(os.Stderr, err)
				}
			}
		},
	}
}
