package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"zorilla/jobs"
	"zorilla/node/api"
	"zorilla/node/api/apitest"
)

func TestInterruptsWithRealNodes(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	net := realNet(t, 2, "--slots", "2", "--expose", g.dir)
	node := net.nodes[1]
	run := func() (signal func(os.Signal, string), end func(code int)) {
		cmd := node.command(t, "run", "-n", "4", "sh", "-c", "echo up; "+g.wait())
		stdout, stderr := start(t, cmd)
		for range 4 {
			expect(t, stdout, "up")
		}
		signal = func(sig os.Signal, answer string) {
			t.Helper()
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			line := expect(t, stderr, answer)
			if sig == os.Interrupt && answer == "Ctrl-C again" && !strings.Contains(line, "RUNNING, 4 of 4 workers run") {
				t.Errorf("Ctrl-C shows %q", line)
			}
		}
		return signal, func(code int) {
			t.Helper()
			if _, err := io.Copy(io.Discard, stdout); err != nil {
				t.Error(err)
			}
			ends(t, cmd, code)
		}
	}

	signal, end := run()
	signal(os.Interrupt, "Ctrl-C again")
	signal(os.Interrupt, "cancelling")
	end(130)
	st := node.job(t, "last", "CANCELLED", inState(jobs.Cancelled))
	if st.ExitCode != jobs.CodeCancelled {
		t.Errorf("exit code %d", st.ExitCode)
	}
	g.deserted(t)

	signal, end = run()
	signal(os.Interrupt, "Ctrl-C again")
	signal(syscall.SIGTERM, "detached from job")
	end(143)
	wantRow(t, "run or attach was told to detach", 143)
	node.job(t, "last", "running", allRun(4))
	g.open(t)
	node.job(t, "last", "COMPLETED", inState(jobs.Completed))
	g.deserted(t)
}

func TestRealDevNetworkStops(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	tmp, err := os.MkdirTemp("", "dev-") // a short path: sockets live below it
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(tmp)
	if err := os.Chmod(tmp, 0o711); err != nil {
		t.Fatal(err)
	}
	cmd := zorilla(t, "", "dev", "-n", "3", "--slots", "2")
	cmd.Env = append(cmd.Env, realNodes+"=1", "TMPDIR="+tmp)
	stdout, stderr := start(t, cmd)
	_, state, _ := strings.Cut(strings.TrimSpace(expect(t, stdout, "export ZORILLA_STATE=")), "=")
	expect(t, stdout, "page   http://127.0.0.1:")
	expect(t, stdout, "Ctrl-C stops the network")
	client, err := api.Dial(socketOf(state))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	job, err := client.Submit(t.Context(), jobs.Spec{Args: []string{"sh", "-c", "echo up; sleep 1000; : " + g.path}, Min: 6, Max: 6, Slots: 1})
	if err != nil {
		t.Fatal(err)
	}
	seen := errors.New("all are up")
	up := 0
	err = client.Output(t.Context(), string(job), api.OutputQuery{Rank: -1, Follow: true}, func(jobs.Output) error {
		if up++; up == 6 {
			return seen
		}
		return nil
	})
	if !errors.Is(err, seen) {
		t.Fatalf("%d of 6 workers are up: %v", up, err)
	}

	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	rest(t, stdout)
	if text := rest(t, stderr); text != "" {
		t.Errorf("it says %q", text)
	}
	ends(t, cmd, 0)
	if left, err := os.ReadDir(tmp); err != nil || len(left) != 0 {
		t.Errorf("left below TMPDIR: %v, %v", left, err)
	}
	if _, err := client.Node(context.Background()); !errors.Is(err, api.ErrNoNode) {
		t.Errorf("the first node answers: %v", err)
	}
	g.deserted(t)
	if left := processes(filepath.Dir(state)); len(left) != 0 {
		t.Errorf("processes are left: %q", left)
	}
}

// unanswered is a node that accepts a job, has the client interrupted, and answers no more
// until the client has gone away.
type unanswered struct {
	*fakeNode
	interrupt chan func() // of the first submission; closed after it
}

// Submit implements api.Service.
func (n *unanswered) Submit(ctx context.Context, spec jobs.Spec) (jobs.ID, error) {
	id, err := n.fakeNode.Submit(ctx, spec)
	if interrupt := <-n.interrupt; interrupt != nil {
		interrupt()
		<-ctx.Done()
		return "", ctx.Err()
	}
	return id, err // the client asks again, with its key
}

// A command that is ended before it knows of its job leaves none.
func TestInterruptedSubmissionLeavesNoJob(t *testing.T) {
	for _, args := range [][]string{{"run", "sleep", "1000"}, {"alloc", "--", "sleep", "1000"}, {"submit", "sleep", "1000"}, {"rerun", "last"}} {
		for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
			t.Run(args[0]+" "+sig.String(), func(t *testing.T) {
				state := t.TempDir()
				node := &unanswered{newFakeNode(state), make(chan func(), 1)}
				node.OnSubmit = nil // it waits for workers
				before := 0
				if args[0] == "rerun" {
					if _, err := node.fakeNode.Submit(t.Context(), jobs.Spec{Args: []string{"sleep", "1000"}, Min: 1, Max: 1, Slots: 1}); err != nil {
						t.Fatal(err)
					}
					before = 1
				}
				stop, err := serve(node, state)
				if err != nil {
					t.Fatal(err)
				}
				defer stop()
				heard := make(chan os.Signal, 1)
				signal.Notify(heard, sig) // or who is started with it ignored, as by nohup, hands that on
				defer signal.Stop(heard)
				cmd := zorilla(t, state, args...)
				stdout, stderr := start(t, cmd)
				node.interrupt <- func() {
					if err := cmd.Process.Signal(sig); err != nil {
						t.Error(err)
					}
				}
				close(node.interrupt)
				if text := rest(t, stderr); !strings.Contains(text, "interrupted: cancelled job ") {
					t.Errorf("it says %q", text)
				}
				if text := rest(t, stdout); text != "" {
					t.Errorf("it prints %q", text)
				}
				ends(t, cmd, 128+int(sig))
				wantRow(t, "signal N came to", 128+int(sig))
				all, err := node.Jobs(t.Context(), false)
				if err != nil || len(all) != before+1 || all[0].State != jobs.Cancelled {
					t.Errorf("jobs are %v, %v", all, err)
				}
			})
		}
	}
}

// Nobody reads the ID of a job that was submitted: the job is named elsewhere.
func TestIDThatCannotBePrinted(t *testing.T) {
	state, node, _ := startNodeHere(t)
	for _, args := range [][]string{{"submit", "true"}, {"submit", "--json", "true"}, {"rerun", "last"}} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		r.Close()
		cmd := zorilla(t, state, args...)
		var stderr strings.Builder
		cmd.Stdout, cmd.Stderr = w, &stderr
		if err := cmd.Run(); err == nil || cmd.ProcessState.ExitCode() != exitFailure {
			t.Errorf("%v ended with %v", args, err)
		}
		w.Close()
		st, err := node.Job(t.Context(), "last")
		if want := "job " + st.ID.Short() + " was submitted, but its ID cannot be printed: "; err != nil || !strings.Contains(stderr.String(), want) {
			t.Errorf("%v says %q, want %q (%v)", args, stderr.String(), want, err)
		}
	}
}

// signalling is a node that has a signal taken before it answers a submission.
type signalling struct {
	*apitest.Fake
	signals chan os.Signal
	list    []os.Signal
	fails   error
	held    bool // it does not answer before the client has given up
	cancel  error
}

func (n *signalling) Submit(ctx context.Context, spec jobs.Spec) (jobs.ID, error) {
	id, err := jobs.ID(""), n.fails
	if err == nil {
		id, err = n.Fake.Submit(ctx, spec)
	}
	for _, sig := range n.list {
		n.signals <- sig
	}
	if n.list = nil; n.held {
		n.held = false
		<-ctx.Done()
		return "", ctx.Err()
	}
	return id, err
}

func (n *signalling) Cancel(ctx context.Context, job string, atOnce bool) error {
	if n.cancel != nil {
		return n.cancel
	}
	return n.Fake.Cancel(ctx, job, atOnce)
}

func TestSignalsDuringSubmissions(t *testing.T) {
	const cancelled, goesOn = "interrupted: cancelled job ", "comes back to it"
	intr := []os.Signal{os.Interrupt}
	for name, c := range map[string]struct {
		node  signalling
		key   string
		fate  fate
		code  int
		says  string
		state jobs.State // "" = there is no job
		left  os.Signal  // for who follows it
	}{
		"none":                           {fate: followed, state: jobs.Pending},
		"answered":                       {node: signalling{list: intr}, fate: followed, code: 130, says: cancelled, state: jobs.Cancelled},
		"not answered":                   {node: signalling{list: intr, held: true}, fate: followed, code: 130, says: cancelled, state: jobs.Cancelled},
		"another signal before":          {node: signalling{list: []os.Signal{syscall.SIGPIPE, syscall.SIGWINCH, syscall.SIGTERM}}, code: 143, says: cancelled, state: jobs.Cancelled},
		"twice":                          {node: signalling{list: []os.Signal{os.Interrupt, os.Interrupt}, held: true}, code: 130, says: "'zorilla ps' shows", state: jobs.Pending},
		"refused":                        {node: signalling{list: intr, fails: jobs.ErrInvalid}, code: 130, says: "the job was not accepted"},
		"cannot be cancelled":            {node: signalling{list: intr, cancel: api.ErrUnavailable}, code: 130, says: "was not cancelled: unavailable: 'zorilla cancel ", state: jobs.Pending},
		"detaches":                       {node: signalling{list: []os.Signal{syscall.SIGQUIT}}, fate: followed, state: jobs.Pending, left: syscall.SIGQUIT},
		"nobody follows it":              {node: signalling{list: []os.Signal{syscall.SIGQUIT}}, code: 131, says: cancelled, state: jobs.Cancelled},
		"a user's key":                   {node: signalling{list: intr}, key: "K", fate: followed, code: 130, says: goesOn, state: jobs.Pending},
		"a user's key, held":             {node: signalling{list: intr}, key: "K", code: 130, says: cancelled, state: jobs.Cancelled},
		"a user's key, and not answered": {node: signalling{list: intr, held: true}, key: "K", fate: followed, code: 130, says: "again with --key K", state: jobs.Pending},
		"nobody stays with it":           {node: signalling{list: intr, held: true}, fate: left, code: 130, says: cancelled, state: jobs.Cancelled},
		"nobody stays, and SIGQUIT":      {node: signalling{list: []os.Signal{syscall.SIGQUIT}}, fate: left, code: 131, says: cancelled, state: jobs.Cancelled},
		"nobody stays, and a user's key": {node: signalling{list: intr}, key: "K", fate: left, code: 130, says: goesOn, state: jobs.Pending},
	} {
		t.Run(name, func(t *testing.T) {
			node := c.node
			node.Fake = apitest.New()
			node.signals = make(chan os.Signal) // what is sent was taken
			var stderr buffer
			spec := jobs.Spec{Key: c.key, Args: []string{"a"}, Min: 1, Max: 1, Slots: 1}
			if c.left != nil {
				node.signals = make(chan os.Signal, 4)
			}
			id, err := submit(t.Context(), &console{stderr: &stderr}, &node, spec, nil, node.signals, c.fate)
			if code := exitCode(0); errors.As(err, &code) != (c.code != 0) || int(code) != c.code || c.code == 0 && (err != nil || !id.Valid()) {
				t.Errorf("got %q, %v, want %d", id, err, c.code)
			}
			if said := stderr.take(); strings.Count(said, "\n") != min(len(c.says), 1) || !strings.Contains(said, c.says) {
				t.Errorf("said %q, want %q", said, c.says)
			}
			if c.left != nil {
				select {
				case sig := <-node.signals:
					if sig != c.left {
						t.Errorf("%v is left", sig)
					}
				default:
					t.Errorf("%v is lost", c.left)
				}
			}
			all, _ := node.Jobs(t.Context(), false)
			if c.state == "" && len(all) != 0 || c.state != "" && (len(all) != 1 || all[0].State != c.state) {
				t.Errorf("jobs are %v, want %s", all, c.state)
			}
		})
	}
}
