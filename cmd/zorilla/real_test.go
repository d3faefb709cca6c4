package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"zorilla/internal/seeds"
	"zorilla/node/api"
)

// TestRealNodes runs the scripts of testdata/real, each against a network of
// its own: real node processes on 127.0.0.1, 127.0.0.2, ... Beside testscript's
// own commands there are
//
//	exits CODE COMMAND...      exec a command that must end with the code
//	row NAME [COMMAND...]      the command, and the last job, do what a row of
//	                           docs/exit-codes.md says
//	network N [OPTION...]      start nodes 1 to N and wait until all know all;
//	                           clients find node 1; $NODE1 ... are their
//	                           states, $ADDRESS1 and $WEB1 their addresses
//	startnode K [OPTION...]    start node K, or start it again, and wait for it;
//	                           workers end with their nodes unless --node-limit
//	                           says otherwise
//	killnode K [SIGNAL]        end a node (default KILL) and wait for its end
//	waitfor REGEXP COMMAND...  exec until the standard output matches
//	[!] procs TEXT             wait until a (no) command line has the text
//	peak MIB                   no node ever needed more memory than that
//	nodelog K REGEXP           wait until the log of node K matches
//	needs PROGRAM...           what the script cannot do without: internal/needs
//	build NAME PACKAGE         go build a program of this repository
//	socket NAME                make a unix socket
//	tmpfs NAME SIZE [noexec]   mount a small disk, until the end of the script
//	ext4 NAME SIZE             the same of one that fsfreeze can freeze; it is thawed then
//
// $TESTDATA and $EXAMPLES are the directories of that name. Some of the scripts run again, and
// those of testdata/basic, against nodes that are not root's: guise_test.go.
func TestRealNodes(t *testing.T) {
	t.Parallel()
	p := realParams(own)
	p.Dir = "testdata/real"
	testscript.Run(t, p)
}

// TestMPI runs those of testdata/mpi, one after the other: their ranks are more than the
// processors, and most wait by asking again and again.
func TestMPI(t *testing.T) {
	t.Parallel()
	scripts, err := filepath.Glob("testdata/mpi/*.txtar")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("%d scripts, %v", len(scripts), err)
	}
	for _, script := range scripts {
		p := realParams(own)
		p.Files = []string{script}
		t.Run(strings.TrimSuffix(filepath.Base(script), ".txtar"), func(t *testing.T) { testscript.Run(t, p) })
	}
}

// realParams are those of TestRealNodes, with nodes of a guise.
func realParams(g guise) testscript.Params {
	return testscript.Params{
		Setup: func(env *testscript.Env) error {
			n := &realNetwork{dir: filepath.Join(env.WorkDir, "net"), guise: g, nodes: map[int]*realNode{}}
			env.Values[networkKey{}] = n
			env.Values[testKey{}] = env.T()
			env.Defer(n.stop)
			env.Setenv(realNodes, "1")
			env.Setenv(raceOptions())
			env.Setenv("HOME", filepath.Join(env.WorkDir, "home"))
			env.Setenv("ZORILLA_STATE", n.stateOf(1))
			for name, dir := range map[string]string{"TESTDATA": "testdata", "EXAMPLES": "../../examples"} {
				path, err := filepath.Abs(dir)
				if err != nil {
					return err
				}
				env.Setenv(name, path)
			}
			if err := os.Mkdir(n.dir, 0o711); err != nil {
				return err
			}
			return openTo(env.WorkDir)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "network": cmdNetwork, "startnode": cmdStartNode, "killnode": cmdKillNode,
			"waitfor": cmdWaitFor, "procs": cmdProcs, "peak": cmdPeak, "nodelog": cmdNodeLog,
			"build": cmdBuild, "socket": cmdSocket, "row": cmdRow, "tmpfs": cmdTmpfs, "ext4": cmdExt4, "needs": cmdNeeds,
		},
		Condition: condition,
	}
}

// condition knows [root], [race], and [full], which is .ci/full. Scripts that ask for [race] run
// without the race detector too, as tests do that ask seeds.Raced: see .ci/run.
func condition(cond string) (bool, error) {
	switch cond {
	case "race":
		return seeds.Raced, nil
	case "full":
		return seeds.Full(), nil
	case "root":
		return os.Geteuid() == 0, nil
	}
	return false, fmt.Errorf("unknown condition %q", cond)
}

// realNodes is set in the environment of commands that start real nodes.
const realNodes = "REALNODES"

const (
	realDeadline = 2 * time.Minute        // of every wait of a script; a search for workers waits for up to half of it
	slowPoll     = 200 * time.Millisecond // how rarely a wait looks, at last
)

// openTo lets the workers' user pass through a directory of ours.
func openTo(dir string) error {
	for d := dir; d != os.TempDir() && len(d) > 1; d = filepath.Dir(d) {
		info, err := os.Stat(d)
		if err != nil {
			return err
		}
		if err := os.Chmod(d, info.Mode().Perm()|0o111); err != nil {
			return err
		}
	}
	return nil
}

type (
	networkKey struct{}
	testKey    struct{}
)

func networkOf(ts *testscript.TestScript) *realNetwork {
	return ts.Value(networkKey{}).(*realNetwork)
}

// realNetwork is the nodes of one script, by number.
type realNetwork struct {
	dir     string
	invite  string // of the first node that was started
	program string // "" = the one that is tested
	guise   guise
	nodes   map[int]*realNode
}

// realNode is a node process.
type realNode struct {
	number      int
	state, log  string
	listen, web string
	process     *os.Process
	done        chan struct{} // closed after its end
	code        int           // its exit code, after that
	client      *api.Client
}

func (n *realNetwork) stateOf(number int) string { return filepath.Join(n.dir, strconv.Itoa(number)) }

// start starts a node and waits until it answers.
func (n *realNetwork) start(number int, env, options []string) (*realNode, error) {
	node := n.nodes[number]
	if node == nil {
		var err error
		if node, err = newRealNode(number, n.stateOf(number)); err != nil {
			return nil, err
		}
		n.nodes[number] = node
	}
	log, err := os.OpenFile(node.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	program, err := n.program, error(nil)
	if program == "" {
		if program, err = exec.LookPath("zorilla"); err != nil {
			return nil, err
		}
	}
	if program, err = n.guise.lodge(n.dir, node.state, program); err != nil {
		return nil, err
	}
	args := []string{"node", "--state", node.state, "--name", "node" + strconv.Itoa(number), "--listen", node.listen, "--web", node.web, "--node-limit", "0"}
	cmd := exec.Command(program, append(args, options...)...)
	cmd.Env = env
	if n.invite != "" {
		cmd.Env = append(cmd.Env, "ZORILLA_JOIN="+n.invite)
	}
	cmd.Stdout, cmd.Stderr = log, log
	// However the test ends, no node is left.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	n.guise.dress(cmd)
	started := make(chan error, 1)
	node.done = make(chan struct{})
	go func() {
		// The death signal comes with the end of this thread.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(node.done)
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // its log tells more
			node.code = cmd.ProcessState.ExitCode()
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	node.process = cmd.Process
	return node, node.until("answer", func(ctx context.Context) bool {
		token, err := node.client.Invite(ctx)
		if err == nil && n.invite == "" {
			n.invite = token
		}
		return err == nil
	})
}

func newRealNode(number int, state string) (*realNode, error) {
	node := &realNode{number: number, state: state, log: state + ".log"}
	var err error
	if node.listen, err = addresses.Free("127.0.0." + strconv.Itoa(number)); err != nil {
		return nil, err
	}
	if node.web, err = addresses.Free("127.0.0.1"); err != nil {
		return nil, err
	}
	node.client, err = api.Dial(socketOf(state))
	return node, err
}

// until polls the node.
func (n *realNode) until(what string, ok func(context.Context) bool) error {
	ctx, stop := context.WithTimeout(context.Background(), realDeadline)
	defer stop()
	for pause := pollEvery; !ok(ctx); pause = min(2*pause, slowPoll) {
		select {
		case <-n.done:
			b, err := os.ReadFile(n.log)
			return fmt.Errorf("node %d ended: %s, %w", n.number, b, err)
		case <-ctx.Done():
			b, _ := os.ReadFile(n.log)
			return fmt.Errorf("node %d does not %s: %s", n.number, what, b)
		case <-time.After(pause):
		}
	}
	return nil
}

func (n *realNode) running() bool {
	select {
	case <-n.done:
		return false
	default:
		return n.process != nil
	}
}

// end sends a signal and waits for the end of the process.
func (n *realNode) end(sig syscall.Signal) error {
	if err := n.process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-n.done:
		return nil
	case <-time.After(realDeadline):
		return fmt.Errorf("node %d goes on after signal %v", n.number, sig)
	}
}

// stop ends all nodes.
func (n *realNetwork) stop() {
	for _, node := range n.nodes {
		if node.process != nil {
			_ = node.process.Signal(syscall.SIGTERM) // fails if it has ended
		}
	}
	for _, node := range n.nodes {
		if node.process != nil {
			select {
			case <-node.done:
			case <-time.After(stopGrace):
				_ = node.process.Kill() // as above
				<-node.done
			}
		}
		node.client.Close()
	}
}
