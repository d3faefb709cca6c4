package process

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"zorilla/jobs/work"
)

// services are a TCP port of the machine, and an abstract name, at which somebody listens.
func services(t *testing.T) (tcp, abstract string) {
	t.Helper()
	for network, addr := range map[string]*string{"tcp": &tcp, "unix": &abstract} {
		at := map[string]string{"tcp": "127.0.0.1:0", "unix": "@zorilla-" + t.Name() + fmt.Sprint(os.Getpid())}[network]
		ln, err := net.Listen(network, at)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = ln.Close() })
		*addr = ln.Addr().String()
	}
	return tcp, abstract
}

// A worker that is to have no network reaches nobody, not even by the loopback interface
// of the machine or its abstract sockets, and has one of its own.
func TestWithoutNetwork(t *testing.T) {
	tcp, abstract := services(t)
	eachWay(t, func(t *testing.T, cfg Config, spec func(string, ...string) Spec) {
		s := spec("network", tcp, abstract)
		if s.Alone = true; cfg.Basic {
			if _, err := probed(t, cfg).Start(t.Context(), s); !errors.Is(err, errAlone) {
				t.Errorf("%v", err)
			}
			return
		}
		e, out, stderr := run(t, cfg, s)
		if e.Code != 0 || strings.TrimSpace(out) != "interfaces: lo; talks to itself" {
			t.Errorf("%+v %q %q", e, out, stderr)
		}
		s = spec("network", tcp)
		if _, out, _ = run(t, cfg, s); !strings.Contains(out, "reaches "+tcp) {
			t.Errorf("with the host's network: %q", out)
		}
	})
}

// silence is how long a worker waits for an answer that does not come.
const silence = 500 * time.Millisecond

// A worker that is to reach its job alone does not reach the services of its machine, nor abstract
// sockets, from its first moment on; and what was made for its job goes with the last worker's directory.
func TestAmongItsJob(t *testing.T) {
	tcp, abstract := services(t)
	eachWay(t, func(t *testing.T, cfg Config, spec func(string, ...string) Spec) {
		s := spec("network", tcp, abstract)
		s.Among = &Among{Job: "among" + fmt.Sprint(os.Getpid())}
		if !slices.Contains(probed(t, cfg).Enforces(), NetworkJob) {
			if _, err := probed(t, cfg).Start(t.Context(), s); !errors.Is(err, errAmong) {
				t.Errorf("%v", err)
			}
			return
		}
		w := start(t, cfg, s)
		its := w.(*worker).spec.terms.Groups
		if e := await(t, w); e.Code != 0 || !strings.HasSuffix(output(t, w, work.Stdout), "; talks to itself\n") {
			t.Errorf("%+v %q %q", e, output(t, w, work.Stdout), output(t, w, work.Stderr))
		}
		if strings.Contains(output(t, w, work.Stdout), "reaches") {
			t.Errorf("it %s", output(t, w, work.Stdout))
		}
		if _, err := os.Lstat(its.Around); err != nil {
			t.Error(err)
		}
		if err := CleanRoot(s.Root, nil); err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(its.Around); err == nil {
			t.Error("the group of the job is left")
		}
	})
}

// A user namespace within is for sandboxes; a network in it would open packet filters.
func TestNoNetworkOfItsOwn(t *testing.T) {
	eachWay(t, func(t *testing.T, cfg Config, spec func(string, ...string) Spec) {
		if cfg.Basic {
			return // see docs/sandbox.md
		}
		s := spec("none")
		s.Args = []string{"/bin/sh", "-c", "unshare -U true && echo user; unshare -U -n true 2>/dev/null && echo network; true"}
		if e, out, stderr := run(t, cfg, s); e.Code != 0 || out != "user\n" {
			t.Errorf("%+v %q %q", e, out, stderr)
		}
	})
}

// useNetwork is a helper that tells what it reaches.
func useNetwork(args []string) int {
	var said []string
	all, err := net.Interfaces()
	names := make([]string, 0, len(all))
	for _, i := range all {
		names = append(names, i.Name)
	}
	said = append(said, "interfaces: "+strings.Join(names, " "))
	for _, to := range args {
		kind := "tcp"
		if strings.HasPrefix(to, "@") {
			kind = "unix"
		}
		if conn, err := net.DialTimeout(kind, to, silence); err == nil {
			_ = conn.Close()
			said = append(said, "reaches "+to)
		}
	}
	ln, err2 := net.Listen("tcp", "127.0.0.1:0")
	if err2 == nil {
		var conn net.Conn
		if conn, err2 = net.Dial("tcp", ln.Addr().String()); err2 == nil {
			_ = conn.Close()
			said = append(said, "talks to itself")
		}
	}
	fmt.Println(strings.Join(said, "; "))
	if err := errors.Join(err, err2); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
