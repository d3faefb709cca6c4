// Package lab lets a Go program play its part in the lab of testnet/hosts: from
// outside (Build, Stage) it starts itself again as the lab's script and looks for
// what the lab leaves behind; as the script (Enter) it starts, kills and asks real
// nodes on emulated hosts (Node) and changes the network (Do).
package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"zorilla/node/api"
)

// Plan is what a script needs to know of the file that describes its network; see
// testnet/hosts for all of it.
type Plan struct {
	Sites []Site
	RTT   [][]float64 `json:"rtt_ms"` // between sites, in milliseconds
}

// Site is a local network with some hosts.
type Site struct {
	Name  string
	Hosts int
}

// ReadPlan reads a Plan from a file that the lab has accepted, or will check.
func ReadPlan(file string) (p Plan, err error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return p, fmt.Errorf("%w: start me in the root of the repository", err)
	}
	return p, json.Unmarshal(b, &p)
}

// Hosts returns the names of all hosts, in the order of the sites.
func (p *Plan) Hosts() []string {
	var all []string
	for _, s := range p.Sites {
		for i := range s.Hosts {
			all = append(all, fmt.Sprintf("%s-%d", s.Name, i+1))
		}
	}
	return all
}

// SiteOf returns the index of a host's site, -1 if there is none.
func (p *Plan) SiteOf(host string) int {
	name := host[:max(0, strings.LastIndexByte(host, '-'))]
	for i, s := range p.Sites {
		if s.Name == name {
			return i
		}
	}
	return -1
}

// Address returns the IPv4 address of a host, from 1 on, of a site, from 0 on.
func Address(site, host int) string { return fmt.Sprintf("10.0.%d.%d", site+1, host) }

// Do asks the lab for something, such as Do("cut", "host", "east-1"), and returns
// what it answers.
func Do(request ...string) (string, error) {
	out, err := exec.Command("lab", request...).CombinedOutput()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return "", fmt.Errorf("lab %s: %s", strings.Join(request, " "), strings.TrimSpace(string(out)))
	}
	return string(out), err
}

// Until asks again and again, ten times a second, until missing returns "". It
// returns how long that took; the error tells what is missing after the limit.
func Until(ctx context.Context, limit time.Duration, what string, missing func(context.Context) string) (time.Duration, error) {
	for begin := time.Now(); ; {
		try, cancel := context.WithTimeout(ctx, 5*time.Second)
		lacks := missing(try)
		cancel()
		took := time.Since(begin)
		switch {
		case lacks == "":
			return took, nil
		case ctx.Err() != nil:
			return took, fmt.Errorf("%w: while waiting until %s", context.Cause(ctx), what)
		case took > limit:
			return took, fmt.Errorf("not within %v: %s: %s", limit, what, lacks)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// On runs f in the network of a host. The sockets that it opens stay there.
func On(dir, host string, f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // for good: the thread is changed, and ends with f
		file, err := os.Open(filepath.Join(dir, "net", host))
		if err == nil {
			err = unix.Setns(int(file.Fd()), unix.CLONE_NEWNET)
			_ = file.Close() // it was only read
		}
		if err == nil {
			err = f()
		}
		done <- err
	}()
	return <-done
}

// All returns a question for Until: what is missing in what nodes tell of the
// members of their network.
func All(nodes []*Node, missing func(*Node, []api.NodeInfo) string) func(context.Context) string {
	return func(ctx context.Context) string {
		for _, n := range nodes {
			members, err := n.Client.Nodes(ctx)
			if err != nil {
				return fmt.Sprintf("%s: %v", n.Name, err)
			}
			if lacks := missing(n, members); lacks != "" {
				return n.Name + " " + lacks
			}
		}
		return ""
	}
}
