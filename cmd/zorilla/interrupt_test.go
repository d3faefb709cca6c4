package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"zorilla/jobs"
	"zorilla/node/api"
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
