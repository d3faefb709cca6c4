package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	"zorilla/internal/built"
	"zorilla/internal/needs"
)

func number(ts *testscript.TestScript, s string) int {
	n, err := strconv.Atoi(s)
	ts.Check(err)
	return n
}

// nodeEnv is the environment of nodes: nothing of it but the switch is a
// script's.
func nodeEnv() []string { return append(cleanEnvironment(), realNodes+"=1") }

func cmdNetwork(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: network N [OPTION...]")
	}
	n, count := networkOf(ts), number(ts, args[0])
	for k := 1; k <= count; k++ {
		node, err := n.start(k, nodeEnv(), args[1:])
		ts.Check(err)
		node.setenv(ts)
	}
	for _, node := range n.nodes {
		ts.Check(node.until("know all", func(ctx context.Context) bool {
			all, err := node.client.Nodes(ctx)
			return err == nil && len(all) == count
		}))
	}
}

func cmdStartNode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: startnode K [OPTION...]")
	}
	n, k := networkOf(ts), number(ts, args[0])
	if node := n.nodes[k]; node != nil && node.running() {
		ts.Fatalf("node %d runs already", k)
	}
	node, err := n.start(k, nodeEnv(), args[1:])
	ts.Check(err)
	node.setenv(ts)
}

// setenv tells the script where the node is.
func (n *realNode) setenv(ts *testscript.TestScript) {
	k := strconv.Itoa(n.number)
	ts.Setenv("NODE"+k, n.state)
	ts.Setenv("ADDRESS"+k, n.listen)
	ts.Setenv("WEB"+k, n.web)
}

func cmdKillNode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: killnode K [SIGNAL]")
	}
	sig := syscall.SIGKILL
	if len(args) == 2 {
		if sig = unix.SignalNum("SIG" + args[1]); sig == 0 {
			ts.Fatalf("no signal SIG%s", args[1])
		}
	}
	node := networkOf(ts).nodes[number(ts, args[0])]
	if node == nil || !node.running() {
		ts.Fatalf("node %s does not run", args[0])
	}
	ts.Check(node.end(sig))
}

// within polls until the condition holds, at longer and longer intervals: to ask
// may mean to start a process, and others wait as well.
func within(ok func() bool) bool {
	end := time.After(realDeadline)
	for pause := pollEvery; !ok(); pause = min(2*pause, slowPoll) {
		select {
		case <-end:
			return false
		case <-time.After(pause):
		}
	}
	return true
}

func cmdWaitFor(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: waitfor REGEXP COMMAND...")
	}
	re, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	env := scriptEnv(ts)
	program, err := exec.LookPath(args[1])
	ts.Check(err)
	var out []byte
	ok := within(func() bool {
		cmd := exec.Command(program, args[2:]...)
		cmd.Dir, cmd.Env = ts.MkAbs("."), env
		out, err = cmd.CombinedOutput()
		return re.Match(out)
	})
	ts.Logf("[waitfor]\n%s", out)
	if !ok {
		ts.Fatalf("no match for %q in the output of %q (%v)", args[0], args[1:], err)
	}
}

// scriptEnv is the part of a script's environment that matters to zorilla.
func scriptEnv(ts *testscript.TestScript) []string {
	env := cleanEnvironment()
	for _, name := range []string{"HOME", "GORACE", realNodes, "ZORILLA_STATE", "ZORILLA_NODE"} {
		env = append(env, name+"="+ts.Getenv(name))
	}
	return env
}

// cmdProcs looks at the command lines of all processes of this machine: a
// script chooses a text that nobody else uses.
func cmdProcs(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: [!] procs TEXT")
	}
	var found []string
	if !within(func() bool { found = processes(args[0]); return (len(found) == 0) == neg }) {
		ts.Fatalf("processes with %q: %q", args[0], found)
	}
}

// processes returns the command lines that have the text.
func processes(text string) []string {
	var found []string
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline") // the pattern is good
	for _, file := range files {
		b, err := os.ReadFile(file)
		if line := strings.ReplaceAll(string(b), "\x00", " "); err == nil && strings.Contains(line, text) {
			found = append(found, filepath.Base(filepath.Dir(file))+" "+line)
		}
	}
	return found
}

func cmdPeak(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: peak MIB")
	}
	limit := number(ts, args[0])
	re := regexp.MustCompile(`(?m)^VmHWM:\s+(\d+) kB$`)
	for _, node := range networkOf(ts).nodes {
		b, err := os.ReadFile("/proc/" + strconv.Itoa(node.process.Pid) + "/status")
		ts.Check(err)
		m := re.FindSubmatch(b)
		if m == nil {
			ts.Fatalf("no VmHWM of node %d", node.number)
		}
		peak := number(ts, string(m[1])) >> 10
		ts.Logf("node %d: peak %d MiB", node.number, peak)
		if peak > limit {
			ts.Fatalf("node %d needed %d MiB, more than %d", node.number, peak, limit)
		}
	}
}

func cmdNodeLog(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: nodelog K REGEXP")
	}
	re, err := regexp.Compile("(?m)" + args[1])
	ts.Check(err)
	node := networkOf(ts).nodes[number(ts, args[0])]
	var b []byte
	if !within(func() bool { b, err = os.ReadFile(node.log); return err == nil && re.Match(b) }) {
		ts.Fatalf("no match for %q in the log of node %s: %s", args[1], args[0], b)
	}
}

// cmdBuild builds with the caches of whoever runs the tests.
func cmdBuild(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: build NAME PACKAGE")
	}
	env := []string{"CGO_ENABLED=0"} // without the race detector
	if goarch := ts.Getenv("GOARCH"); goarch != "" {
		env = append(env, "GOARCH="+goarch)
	}
	ts.Check(built.Program(ts.MkAbs(args[0]), args[1], env...))
}

func cmdSocket(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: socket NAME")
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	ts.Check(err)
	ts.Defer(func() { _ = unix.Close(fd) }) // it was never used
	ts.Check(unix.Bind(fd, &unix.SockaddrUnix{Name: ts.MkAbs(args[0])}))
}

func cmdTmpfs(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || len(args) > 3 || len(args) == 3 && args[2] != "noexec" {
		ts.Fatalf("usage: tmpfs NAME SIZE [noexec]")
	}
	dir, n := ts.MkAbs(args[0]), networkOf(ts)
	flags, mode := uintptr(0), "755"
	if len(args) == 3 {
		flags, mode = syscall.MS_NOEXEC, "1777" // nodes of others have directories of their own there
	}
	ts.Check(os.Mkdir(dir, 0o755))
	ts.Check(syscall.Mount("tmpfs", dir, "tmpfs", flags, "mode="+mode+",size="+args[1]))
	ts.Defer(func() {
		n.stop() // first: workers have files there
		_ = syscall.Unmount(dir, syscall.MNT_DETACH)
	})
}

// cmdExt4 mounts a disk that scripts can freeze (fsfreeze).
func cmdExt4(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: ext4 NAME SIZE")
	}
	dir, n := ts.MkAbs(args[0]), networkOf(ts)
	ts.Check(os.Mkdir(dir, 0o755))
	ts.Check(ts.Exec("mkfs.ext4", "-q", dir+".img", args[1]))
	ts.Check(ts.Exec("mount", "-o", "loop", dir+".img", dir))
	ts.Defer(func() {
		_ = exec.Command("fsfreeze", "-u", dir).Run() // or nothing there ends, ever; it fails if it is not frozen
		n.stop()
		_ = syscall.Unmount(dir, syscall.MNT_DETACH)
	})
}

func cmdNeeds(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: needs PROGRAM...")
	}
	needs.Script(ts.Value(testKey{}).(testscript.T), ts.Name(), args...)
}
