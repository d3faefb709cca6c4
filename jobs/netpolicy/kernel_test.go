package netpolicy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"zorilla/internal/needs"
	"zorilla/jobs/cgroup"
)

// The processes of a test: the stage is a machine of its own, with a group; far is another
// machine; inside is in the stage's group. Each is told line by line what to do, and
// answers with a line.
func TestMain(m *testing.M) {
	if role := os.Getenv("REACH_TEST"); role != "" {
		serve()
		return
	}
	os.Exit(m.Run())
}

// helper is such a process.
type helper struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func start(attr *syscall.SysProcAttr) (*helper, error) {
	h := &helper{cmd: exec.Command("/proc/self/exe")}
	h.cmd.Env, h.cmd.SysProcAttr, h.cmd.Stderr = append(os.Environ(), "REACH_TEST=1"), attr, os.Stderr
	h.in, _ = h.cmd.StdinPipe()
	out, _ := h.cmd.StdoutPipe()
	h.out = bufio.NewReader(out)
	return h, h.cmd.Start()
}

func startMachine(t *testing.T) *helper {
	t.Helper()
	h, err := start(&syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET})
	if errors.Is(err, unix.EPERM) { // a container
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.end)
	return h
}

func (h *helper) end() {
	_ = h.in.Close()
	_ = h.cmd.Wait()
}

func (h *helper) ask(line string) string {
	fmt.Fprintln(h.in, line)
	answer, err := h.out.ReadString('\n')
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(answer)
}

// serve is the life of a helper.
func serve() {
	keeper := new(Keeper)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		f := strings.Fields(lines.Text())
		var answer string
		switch f[0] {
		case "run":
			out, err := exec.Command(f[1], f[2:]...).CombinedOutput()
			if answer = "ok"; err != nil {
				answer = fmt.Sprintf("%v: %.200s", err, strings.ReplaceAll(string(out), "\n", " "))
			}
		case "set":
			answer = word(keeper.Change(&cgroup.Place{Around: f[1]}, addrs(strings.Join(f[2:], " "))))
		case "admit":
			its, _ := (&cgroup.Place{Plain: f[1]}).Of("a")
			answer = word(keeper.Admit(&its, f[2], addrs(strings.Join(f[3:], " "))))
		case "successor": // another life of the node
			answer, keeper = "ok", new(Keeper)
		case "later":
			for _, its := range keeper.of {
				its.until = time.Now()
			}
			answer = "ok"
		case "stray":
			answer = word(stray(f[1], f[2]))
		case "try":
			answer = word(Try(&cgroup.Place{Plain: f[1]}))
		case "came":
			answer = fmt.Sprint(came.Load())
		case "listen":
			answer = listenAt(f[1], f[2])
		case "say":
			patience, _ := time.ParseDuration(f[3])
			answer = say(f[1], f[2], patience)
		}
		fmt.Println(answer)
	}
}

func word(err error) string {
	if err != nil {
		return err.Error()
	}
	return "ok"
}

// came counts the datagrams that a helper has got.
var came atomic.Int64

// kept are sockets: those of a helper live as long as it does.
var kept []io.Closer

// listenAt answers all that comes at an address.
func listenAt(kind, addr string) string {
	if strings.HasPrefix(kind, "udp") {
		c, err := net.ListenPacket(kind, addr)
		if err != nil {
			return err.Error()
		}
		kept = append(kept, c)
		go func() {
			b := make([]byte, 10)
			for {
				n, from, err := c.ReadFrom(b)
				if err != nil {
					return
				}
				came.Add(1)
				_, _ = c.WriteTo(b[:n], from)
			}
		}()
		return "ok"
	}
	var conf net.ListenConfig
	conf.SetMultipathTCP(kind == "mptcp")
	ln, err := conf.Listen(context.Background(), "tcp", addr)
	if err != nil {
		return err.Error()
	}
	kept = append(kept, ln)
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, c) }()
		}
	}()
	return "ok"
}

// say sends a byte and tells what came of it: "heard", "denied" at once, "silence", or
// "refused", since nobody is there.
func say(kind, addr string, patience time.Duration) string {
	d := net.Dialer{Timeout: patience}
	d.SetMultipathTCP(kind == "mptcp")
	c, err := d.Dial(strings.TrimPrefix(kind, "mp"), addr)
	if err == nil {
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(patience))
		if _, err = c.Write([]byte("x")); err == nil {
			_, err = io.ReadFull(c, make([]byte, 1))
		}
	}
	switch {
	case err == nil:
		return "heard"
	case errors.Is(err, unix.EPERM):
		return "denied"
	case errors.Is(err, unix.ECONNREFUSED):
		return "refused"
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "silence"
	}
	if n, ok := errors.AsType[net.Error](err); ok && n.Timeout() {
		return "silence"
	}
	return err.Error()
}

// newGroup makes a group, where that is possible.
func newGroup(t *testing.T) string {
	t.Helper()
	needs.Root(t)
	info, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(info)) {
		if before, after, _ := strings.Cut(line, " - "); strings.HasPrefix(after, "cgroup2 ") {
			dir, err := os.MkdirTemp(strings.Fields(before)[4], "reach-test-")
			if errors.Is(err, unix.EROFS) || errors.Is(err, unix.EACCES) { // a container
				t.Skip(err)
			} else if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				p := cgroup.Place{Plain: dir}
				if its, err := p.Of("a"); err == nil {
					its.Kill("worker")
				}
				p.Sweep()
				if err := os.Remove(dir); err != nil {
					t.Error(err)
				}
			})
			return dir
		}
	}
	t.Skip("no groups of version 2")
	return ""
}

// machines makes two that are linked, and a process in a group of the first.
func machines(t *testing.T) (group string, stage, far, inside *helper) {
	t.Helper()
	needs.Programs(t, "ip")
	group = newGroup(t)
	stage = startMachine(t)
	far = startMachine(t)
	its, err := (&cgroup.Place{Plain: group}).Of("a")
	if err == nil {
		err = its.Reserve("worker")
	}
	if err != nil {
		t.Fatal(err)
	}
	group = its.Around
	dir, err := os.Open(filepath.Join(group, "worker"))
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	stage.must(t, "run ip link set lo up", fmt.Sprintf("run ip link add near type veth peer name far netns %d", far.cmd.Process.Pid),
		"run ip link set near addrgenmode none", "run ip addr add 10.9.0.1/24 dev near", "run ip addr add fd09::1/64 dev near nodad", "run ip link set near up")
	far.must(t, "run ip link set lo up", "run ip link set far addrgenmode none", "run ip addr add 10.9.0.2/24 dev far", "run ip addr add 10.9.0.3/24 dev far",
		"run ip addr add fd09::2/64 dev far nodad", "run ip addr add fd09::3/64 dev far nodad preferred_lft 0", "run ip link set far up")
	in := &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
	done := make(chan error)
	go func() { // the thread ends with it
		runtime.LockOSThread()
		f, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", stage.cmd.Process.Pid))
		if err == nil {
			err = unix.Setns(int(f.Fd()), unix.CLONE_NEWNET)
			_ = f.Close()
		}
		if err == nil {
			inside, err = start(in)
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(inside.end)
	return group, stage, far, inside
}

// must has helpers do what cannot fail.
func (h *helper) must(t *testing.T, lines ...string) {
	t.Helper()
	for _, l := range lines {
		if got := h.ask(l); got != "ok" {
			t.Fatalf("%s: %s", l, got)
		}
	}
}

// A group reaches itself, by all addresses of its machine, and those that it is given,
// whatever it speaks; and nobody else reaches it.
func TestWhoIsReached(t *testing.T) {
	group, stage, far, inside := machines(t)
	kinds := []string{"tcp", "udp", "mptcp"}
	for i, kind := range kinds {
		for _, at := range []string{"127.0.0.1", "10.9.0.1", "[::1]", "[fd09::1]"} {
			stage.must(t, fmt.Sprintf("listen %s %s:700%d", kind, at, i))
		}
		for _, at := range []string{"10.9.0.2", "10.9.0.3", "[fd09::2]", "[fd09::3]"} {
			far.must(t, fmt.Sprintf("listen %s %s:700%d", kind, at, i))
		}
		inside.must(t, fmt.Sprintf("listen %s [::]:800%d", kind, i))
	}
	for range 100 { // the link takes a moment
		if inside.ask("say tcp [fd09::2]:7000 100ms") == "heard" {
			break
		}
	}
	check := func(when string, who *helper, want, addrs string) {
		t.Helper()
		for i, kind := range kinds {
			for a := range strings.FieldsSeq(addrs) {
				words := strings.Fields(want)
				want, patience := words[min(i, len(words)-1)], "10s"
				if want == "silence" {
					patience = "60ms"
				}
				if got := who.ask(fmt.Sprintf("say %s %s%d %s", kind, a, i, patience)); got != want {
					t.Errorf("%s: %s to %s%d: %s, want %s", when, kind, a, i, got, want)
				}
			}
		}
	}
	const (
		others = "127.0.0.1:700 10.9.0.1:700 [::1]:700 [fd09::1]:700"
		itself = "127.0.0.1:800 10.9.0.1:800 [::1]:800 [fd09::1]:800"
		there  = "10.9.0.2:700 [fd09::2]:700"
		aside  = "10.9.0.3:700 [fd09::3]:700"
	)
	check("before", inside, "heard", others+" "+itself+" "+there+" "+aside)
	set := "set " + group + " "
	stage.must(t, set+"10.9.0.2 fd09::2 10.9.0.1")
	for _, when := range []string{"set", "set again"} {
		check(when, inside, "heard", itself+" "+there)
		check(when, inside, "silence denied silence", others)
		check(when, inside, "denied", aside)
		check(when, inside, "refused", "127.0.0.1:900 10.9.0.1:900 [::1]:900 10.9.0.2:900")
		check(when, inside, "denied", "255.255.255.255:700 224.0.0.1:700 192.0.2.1:700")
		before := inside.ask("came")
		check(when, stage, "silence", itself)
		if after := inside.ask("came"); after != before {
			t.Errorf("%s: %s datagrams came, %s before", when, after, before)
		}
		check(when, stage, "heard", others+" "+there)
		check(when, far, "heard", "10.9.0.1:800 [fd09::1]:800 10.9.0.2:700")
		stage.must(t, set+"10.9.0.2 fd09::2")
	}
	stage.must(t, set+"10.9.0.3 fd09::3")
	check("changed", inside, "denied", there)
	check("changed", inside, "heard", aside+" "+itself)
	before := inside.ask("came")
	check("changed", far, "silence", "10.9.0.1:800 [fd09::1]:800")
	if after := inside.ask("came"); after != before {
		t.Errorf("%s datagrams came, %s before", after, before)
	}
}

// A node tries it before it offers it; the trial leaves nothing. An
// ordinary user is refused.
func TestTry(t *testing.T) {
	dir := newGroup(t)
	const nobody = 65534
	for _, c := range []struct {
		user, owner int
		want        string
	}{{0, 0, "ok"}, {nobody, 0, "permission denied"}, {nobody, nobody, "whom to reach"}} {
		if err := os.Chown(dir, c.owner, c.owner); err != nil {
			t.Fatal(err)
		}
		h, err := start(&syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(c.user), Gid: uint32(c.user)}})
		if err != nil {
			t.Fatal(err)
		}
		if got := h.ask("try " + dir); !strings.Contains(got, c.want) {
			t.Errorf("user %d: %s", c.user, got)
		}
		h.end()
		Tried(&cgroup.Place{Plain: dir})
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "job-*")); len(left) > 0 {
		t.Errorf("%q are left", left)
	}
}
