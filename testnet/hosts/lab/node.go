package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"zorilla/jobs"
	"zorilla/node/api"
	"zorilla/vicinity"
)

// startTime is how long a node may take to answer, or to end.
const startTime = 30 * time.Second

// Node is the zorilla process of a host. Its methods may be called from any
// goroutine, but those that start or end the process only by who holds Turn.
type Node struct {
	Name   string
	Client *api.Client // answers while the process runs
	Turn   sync.Mutex

	dir    string
	user   int         // whose it is; 0 = of who runs the lab
	wanted atomic.Bool // the process is not to end by itself
	mu     sync.Mutex  // guards what follows
	cmd    *exec.Cmd
	done   chan struct{}
	id     vicinity.ID // stays the same
}

// NewNode returns the node of a host of the lab in dir, before its first start.
func NewNode(dir, host string) (*Node, error) {
	n := &Node{Name: host, dir: dir}
	var err error
	n.Client, err = api.Dial(filepath.Join(n.State(), "zorilla.sock"))
	return n, err
}

// Give makes the node that of an ordinary user, by number, before its first start. The lab
// is root's.
func (n *Node) Give(user int) error {
	n.user = user
	if err := errors.Join(os.Mkdir(n.State(), 0o700), Copy(filepath.Join(n.dir, "secret"), n.secret(), 0o600)); err != nil {
		return err
	}
	return errors.Join(os.Chown(n.State(), user, user), os.Chown(n.secret(), user, user))
}

// secret is the copy of the lab's that a node has which is not root's.
func (n *Node) secret() string { return n.State() + ".secret" }

// State is the node's directory.
func (n *Node) State() string { return filepath.Join(n.dir, n.Name) }

// LogFile is where all that its processes print is appended.
func (n *Node) LogFile() string { return filepath.Join(n.dir, n.Name+".log") }

// Start starts "zorilla node" with options and waits until it answers.
func (n *Node) Start(ctx context.Context, options ...string) error {
	if err := n.launch(options); err != nil {
		return err
	}
	if _, err := Until(ctx, startTime, "the node of "+n.Name+" answers", func(ctx context.Context) string {
		if n.Ended() {
			return ""
		}
		info, err := n.Client.Node(ctx)
		if err != nil {
			return fmt.Sprintf("%v: %s", err, n.LastWords(5))
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		n.id = info.ID
		return ""
	}); err != nil {
		return err
	}
	if n.Ended() {
		return fmt.Errorf("the node of %s ended: %s", n.Name, n.LastWords(5))
	}
	n.wanted.Store(true)
	return nil
}

// Stumble starts the node and kills it after a while, whether it answers or not.
func (n *Node) Stumble(after time.Duration, options ...string) error {
	if err := n.launch(options); err != nil {
		return err
	}
	time.Sleep(after)
	return n.End(syscall.SIGKILL)
}

func (n *Node) launch(options []string) error {
	log, err := os.OpenFile(n.LogFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	args := []string{"host", n.Name}
	if n.user > 0 {
		id := strconv.Itoa(n.user)
		args = append(args, "setpriv", "--reuid", id, "--regid", id, "--clear-groups")
		options = append(slices.Clone(options), "--secret-file", n.secret())
	}
	args = append(args, "zorilla", "node", "-v", "--web", "none", "--name", n.Name)
	cmd := exec.Command("lab", append(args, options...)...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(os.Environ(), "TMPDIR="+filepath.Join(n.dir, "tmp"), "XDG_RUNTIME_DIR=")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // as the daemon that it is for its users
	if err := cmd.Start(); err != nil {
		return err
	}
	done := make(chan struct{})
	n.mu.Lock()
	n.cmd, n.done = cmd, done
	n.mu.Unlock()
	go func() {
		_ = cmd.Wait() // what matters is that it has ended
		close(done)
	}()
	return nil
}

// Owns reports whether the node is the origin of a job.
func (n *Node) Owns(st *jobs.Status) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return st.Origin == n.id
}

func (n *Node) process() (*exec.Cmd, chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.cmd, n.done
}

// Ended reports whether the process that was started last has ended.
func (n *Node) Ended() bool {
	_, done := n.process()
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// Gone reports whether the node has ended though nobody wanted that.
func (n *Node) Gone() bool { return n.wanted.Load() && n.Ended() && n.wanted.Load() }

// Signal sends a signal to the process.
func (n *Node) Signal(s syscall.Signal) error {
	cmd, _ := n.process()
	if err := cmd.Process.Signal(s); err != nil {
		return fmt.Errorf("%s: %w", n.Name, err)
	}
	return nil
}

// End sends a signal that ends the process, and waits for that. After SIGTERM it
// must end with 0.
func (n *Node) End(s syscall.Signal) error {
	n.wanted.Store(false)
	if err := n.Signal(s); err != nil {
		return err
	}
	if err := n.await(s.String()); err != nil {
		return err
	}
	cmd, _ := n.process()
	if code := cmd.ProcessState.ExitCode(); s == syscall.SIGTERM && code != 0 {
		return fmt.Errorf("the node of %s ended with %d after SIGTERM: %s", n.Name, code, n.LastWords(5))
	}
	return nil
}

// Crash takes the power of the host away: all its processes are killed.
func (n *Node) Crash() error {
	n.wanted.Store(false)
	if _, err := Do("crash", n.Name); err != nil {
		return err
	}
	return n.await("a power failure")
}

func (n *Node) await(what string) error {
	_, done := n.process()
	select {
	case <-done:
		return nil
	case <-time.After(startTime):
		return fmt.Errorf("the node of %s goes on %v after %s", n.Name, startTime, what)
	}
}

// LastWords returns the last lines of the node's log.
func (n *Node) LastWords(lines int) string {
	b, err := os.ReadFile(n.LogFile())
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(b)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], " | ")
}
