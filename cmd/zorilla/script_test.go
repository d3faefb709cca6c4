package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"zorilla/jobs/process"
	"zorilla/node"
	"zorilla/node/api"
	"zorilla/node/api/apitest"
)

// TestMain lets this binary be zorilla too, with nodes that are fakes unless
// the environment wants real ones.
func TestMain(m *testing.M) {
	process.Main()
	// Tests of nodes wait more than they compute. An option -parallel counts for
	// more: it is read later.
	if err := flag.Set("test.parallel", strconv.Itoa(max(6, runtime.GOMAXPROCS(0)))); err != nil {
		panic(err)
	}
	asProgram := func() {
		start := startNode(startFake)
		if os.Getenv(realNodes) != "" {
			start = runNode
		}
		os.Exit(program(start))
	}
	testscript.Main(m, map[string]func(){"zorilla": asProgram, shellName: asProgram})
}

// TestScripts runs the scripts of testdata against a fake node on a unix
// socket, whose jobs are real processes of this machine.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(env *testscript.Env) error {
			state := filepath.Join(env.WorkDir, "state")
			stop, err := serve(newFakeNode(state), state)
			env.Defer(stop)
			env.Setenv("ZORILLA_STATE", state)
			env.Setenv(raceOptions())
			env.Setenv("HOME", filepath.Join(env.WorkDir, "home"))
			return err
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "row": cmdRow,
		},
	})
}

// raceOptions is a variable that takes from commands the second that each of
// them waits at its end under the race detector.
func raceOptions() (name, value string) {
	return "GORACE", os.Getenv("GORACE") + " atexit_sleep_ms=0"
}

// exits CODE COMMAND... is exec for a command that must end with the code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit := (*exec.ExitError)(nil)
		if !errors.As(err, &exit) {
			ts.Check(err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// serve serves s on the socket of the state directory.
func serve(s api.Service, state string) (stop func(), err error) {
	l, err := api.Listen(socketOf(state))
	if err != nil {
		return func() {}, err
	}
	return serveOn(s, l), nil
}

func serveOn(s api.Service, l net.Listener) (stop func()) {
	srv := &http.Server{Handler: api.Handler(s)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(l) // always an error: it was closed
	}()
	return func() {
		_ = srv.Close() // a test's server has nothing to lose
		<-done
	}
}

// startFake is a startNode whose node is a fake. Nodes with neighbouring state
// directories know each other, and a bad port cannot be listened on.
func startFake(ctx context.Context, o nodeOptions, ready func(s api.Service, first bool)) error {
	if _, err := net.ResolveTCPAddr("tcp", o.Listen); err != nil {
		return err
	}
	f := newFakeNode(o.State)
	if strings.HasPrefix(o.Name, "node") && o.Name != "node1" && (len(o.Join) != 1 || o.Join[0] != "zor1.of-node1") {
		return fmt.Errorf("%s was invited with %q", o.Name, o.Join)
	}
	f.started = true
	f.Fake.Members[0].Name = o.Name
	f.Fake.Token = "zor1.of-" + o.Name
	f.Fake.Page = "http://" + o.Web + "/?token=t"
	stop, err := serve(f, o.State)
	if err != nil {
		return err
	}
	defer stop()
	fmt.Fprintln(o.Log, "the fake node is up")
	ready(f, false)
	<-ctx.Done()
	return nil
}

// fakeNode is an apitest.Fake that runs its jobs.
type fakeNode struct {
	*apitest.Fake
	state   string
	started bool // by a command
}

func newFakeNode(state string) *fakeNode {
	f := &fakeNode{Fake: apitest.New(), state: state}
	f.Fake.OnSubmit = f.work
	f.Fake.Members[0].Version = node.ProtocolVersion
	there := f.Fake.Members[0]
	there.ID, there.Name, there.Site, there.Self, there.RTT, there.Neighbour = "zabcdefghijklmnopqrstuvwxyz", "there", "", false, 1_500_000, "near"
	f.Fake.Members = append(f.Fake.Members, there)
	return f
}

// Nodes lists as many members as there are neighbouring sockets, if the node
// was started by a command.
func (f *fakeNode) Nodes(ctx context.Context) ([]api.NodeInfo, error) {
	all, err := f.Fake.Nodes(ctx)
	if err != nil || !f.started {
		return all, err
	}
	sockets, err := filepath.Glob(filepath.Join(filepath.Dir(f.state), "*", filepath.Base(socketOf(f.state))))
	for len(all) < len(sockets) {
		all = append(all, all[1])
	}
	return all[:max(1, len(sockets))], err
}

// Survey lists the same.
func (f *fakeNode) Survey(ctx context.Context) ([]api.NodeInfo, error) { return f.Nodes(ctx) }
