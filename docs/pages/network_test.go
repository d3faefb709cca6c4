package pages

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// limit is of one block: some build programs, on a machine that does other things.
const limit = 10 * time.Minute

// built is a copy of this repository, with a program made of it as README.md says.
var built = sync.OnceValues(func() (dir string, err error) {
	blocks, err := Read("../../README.md")
	if err != nil {
		return "", err
	}
	if dir, err = os.MkdirTemp("", "zorilla-pages-"); err != nil {
		return "", err
	}
	if out, err := exec.Command("sh", "-c", `tar -C ../.. --exclude=./.git -c . | tar -C "$0" -x`, dir).CombinedOutput(); err != nil {
		return dir, fmt.Errorf("copy the repository: %w: %s", err, out)
	}
	for _, b := range blocks {
		if text := b.Commands[0].Text; strings.HasSuffix(text, " -o zorilla ./cmd/zorilla") {
			cmd := exec.Command("sh", "-c", text)
			cmd.Dir, cmd.Env = dir, append(os.Environ(), trimmed)
			if out, err := cmd.CombinedOutput(); err != nil {
				return dir, fmt.Errorf("%s: %w: %s", text, err, out)
			}
			return dir, nil
		}
	}
	return dir, fmt.Errorf("README.md does not say how to build zorilla")
})

// trimmed lets what was built in one checkout serve in others.
var trimmed = "GOFLAGS=" + os.Getenv("GOFLAGS") + " -trimpath"

func TestMain(m *testing.M) {
	code := m.Run()
	if dir, err := built(); err == nil || dir != "" {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

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
func start(t *testing.T) *network {
	t.Helper()
	checkout, err := built()
	if err != nil {
		t.Fatal(err)
	}
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
		"ZORILLA_SLOTS=8", "ZORILLA_NODE_LIMIT=0", "ZORILLA_WEB=127.0.0.1:0", "ZORILLA_SITE=rennes", "ZORILLA_LABEL=rack=b7",
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
	env := append(n.env, "ZORILLA_NAME="+c.Host, "ZORILLA_STATE="+n.state(c.Host), "ZORILLA_LISTEN="+freeAddress(n.t, n.nodes))
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

// freeAddress is one of this machine's own, where nobody listens.
func freeAddress(t *testing.T, number int) string {
	t.Helper()
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.%d:0", number))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

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
