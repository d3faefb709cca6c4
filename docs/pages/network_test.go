package pages

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"zorilla/jobs/ports"
)

// limit is of one block: some build programs, on a machine that does other things.
const limit = 10 * time.Minute

// build copies this repository, until the end of the test, and makes a program of it as
// README.md says. It reads what it copies itself: the cache of go test sees that, and not what
// a child of it does, so that the pages are typed again when anything has changed.
func build(t *testing.T) (checkout string) {
	t.Helper()
	blocks, err := Read("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "zorilla-pages-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	entries, err := os.ReadDir("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		from, to := filepath.Join("../..", e.Name()), filepath.Join(dir, e.Name())
		switch {
		case e.Name() == ".git":
		case e.IsDir():
			err = os.CopyFS(to, os.DirFS(from))
		default:
			err = copyFile(to, from)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, b := range blocks {
		if text := b.Commands[0].Text; strings.HasSuffix(text, " -o zorilla ./cmd/zorilla") {
			cmd := exec.Command("sh", "-c", text)
			cmd.Dir, cmd.Env = dir, append(os.Environ(), trimmed)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%s: %v: %s", text, err, out)
			}
			return dir
		}
	}
	t.Fatal("README.md does not say how to build zorilla")
	return ""
}

func copyFile(to, from string) error {
	info, err := os.Stat(from)
	if err != nil || !info.Mode().IsRegular() {
		return err
	}
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, info.Mode().Perm())
}

// trimmed lets what was built in one checkout serve in others.
var trimmed = "GOFLAGS=" + os.Getenv("GOFLAGS") + " -trimpath"

// addresses are those of nodes: all pages are typed at the same time.
var addresses ports.Addresses

// network is the three machines of README.md, as processes of this one.
type network struct {
	t     *testing.T
	dir   string // of all of it; work is where commands are typed
	work  string
	env   []string
	nodes int
	first string // the first machine: commands without a prompt are typed there
	token string
}

// start starts the nodes with the commands of README.md.
func start(t *testing.T, checkout string) *network {
	t.Helper()
	dir, err := os.MkdirTemp("", "zorilla-page-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	n := &network{t: t, dir: dir, work: filepath.Join(dir, "work")}
	for _, d := range []string{dir, n.work, filepath.Join(dir, "bin")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(d, 0o755); err != nil { // workers are other users
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(checkout, "zorilla"), filepath.Join(dir, "bin/zorilla")); err != nil {
		t.Fatal(err)
	}
	goEnv, err := exec.Command("go", "env", "GOROOT", "GOCACHE", "GOMODCACHE", "GOPROXY").Output()
	if err != nil {
		t.Fatal(err)
	}
	of := strings.Split(string(goEnv), "\n")
	n.env = []string{
		"PATH=" + filepath.Join(dir, "bin") + ":" + filepath.Join(of[0], "bin") + ":/usr/bin:/bin:/usr/sbin:/sbin", "HOME=" + dir, "CI=true",
		"GOCACHE=" + of[1], "GOMODCACHE=" + of[2], "GOPROXY=" + of[3], trimmed,
		"ZORILLA_CONFIG=none", "ZORILLA_SLOTS=8", "ZORILLA_NODE_LIMIT=0", "ZORILLA_WEB=127.0.0.1:0", "ZORILLA_SITE=rennes", "ZORILLA_LABEL=rack=b7",
		"REPOSITORY=" + checkout,
	}
	blocks, err := Read("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range blocks {
		for _, c := range b.Commands {
			if c.Host != "" {
				t.Cleanup(n.node(c))
			}
		}
	}
	n.mustType(fmt.Sprintf(`until test $(zorilla nodes | wc -l) = %d; do sleep 0.05; done`, 1+n.nodes))
	return n
}

// node starts a node, on a machine of its own, and returns when it answers.
func (n *network) node(c Command) (stop func()) {
	n.t.Helper()
	n.nodes++
	if c.Host == "" {
		c.Host = fmt.Sprint("other", n.nodes)
	}
	listen, err := addresses.Free(fmt.Sprint("127.0.0.", n.nodes))
	if err != nil {
		n.t.Fatal(err)
	}
	env := append(n.env, "ZORILLA_NAME="+c.Host, "ZORILLA_STATE="+n.state(c.Host), "ZORILLA_LISTEN="+listen)
	cmd := exec.Command("bash", "-c", "exec "+strings.ReplaceAll(c.Text, "zor1.AGqCoXPEIA…", n.token))
	var log bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = n.work, env, &log, &log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM} // with the test, however that ends
	started, ended := make(chan error, 1), make(chan struct{})
	go func() {
		runtime.LockOSThread() // the signal comes with the end of this thread
		defer close(ended)
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // its log tells more
		}
	}()
	if err := <-started; err != nil {
		n.t.Fatal(err)
	}
	stop = func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		<-ended
		if n.t.Failed() {
			n.t.Logf("%s$ %s\n%s", c.Host, c.Text, &log)
		}
	}
	if n.first == "" {
		n.first = c.Host
	}
	token, _, err := n.types(fmt.Sprintf("export ZORILLA_STATE=%s; until zorilla invite 2>/dev/null; do kill -0 %d; sleep 0.05; done", n.state(c.Host), cmd.Process.Pid))
	if err != nil {
		stop()
		n.t.Fatalf("%s: %v: %s", c.Text, err, &log)
	}
	if n.token == "" {
		n.token = strings.TrimSpace(token)
	}
	return stop
}

func (n *network) state(host string) string { return filepath.Join(n.dir, host) }

// types runs commands as a shell does, which ends with the first that fails.
func (n *network) types(script string, options ...string) (out, said string, err error) {
	ctx, stop := context.WithTimeout(n.t.Context(), limit)
	defer stop()
	cmd := exec.CommandContext(ctx, "bash", append(options, "-eu", "-o", "pipefail", "-c", script)...)
	var stdout, stderr bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = n.work, append(n.env, "ZORILLA_STATE="+n.state(n.first)), &stdout, &stderr
	if strings.Contains(script, "--pty") || strings.Contains(script, " alloc ") {
		cmd.Stdin = leaving{}
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	if err = cmd.Run(); ctx.Err() != nil {
		err = ctx.Err()
	}
	return stdout.String(), stderr.String(), err
}

// leaving is what somebody types who has seen enough of a shell. Commands before it may have
// taken the beginning of a line.
type leaving struct{}

func (leaving) Read(b []byte) (int, error) { return copy(b, "exit 0\n"), nil }

// mustType is for what no page shows.
func (n *network) mustType(script string) string {
	n.t.Helper()
	out, said, err := n.types(script)
	if err != nil {
		n.t.Fatalf("%v: %s%s", err, out, said)
	}
	return out
}
