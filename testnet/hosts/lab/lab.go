// Package lab lets a Go program play its part in the lab of testnet/hosts: from
// outside (Build, Stage) it starts itself again as the lab's script and looks for
// what the lab leaves behind; as the script (Enter) it starts, kills and asks real
// nodes on emulated hosts (Node) and changes the network (Do).
package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"zorilla/node/api"
)

// Do asks the lab for something, such as Do("cut", "host", "east-1"), and returns
// what it answers.
func Do(request ...string) (string, error) { return Request(os.Getenv(Variable), request) }

// ControlSocket is where the lab in dir answers requests: one line each, and after
// the answer's text a line that is "ok" or "error: ...".
func ControlSocket(dir string) string { return filepath.Join(dir, "control") }

// Request asks the lab in dir to do something and returns what it says.
func Request(dir string, args []string) (string, error) {
	for _, a := range args {
		if strings.ContainsAny(a, " \t\n") || a == "" {
			return "", fmt.Errorf("%.40q: want one word", a)
		}
	}
	conn, err := net.Dial("unix", ControlSocket(dir))
	if err != nil {
		return "", fmt.Errorf("no lab answers at %s: run this in the script of a lab", dir)
	}
	defer conn.Close()
	if _, err := fmt.Fprintln(conn, strings.Join(args, " ")); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(conn)
	if err != nil {
		return "", err
	}
	text := strings.TrimSuffix(string(answer), "\n")
	end := strings.LastIndexByte(text, '\n') + 1
	if said, bad := strings.CutPrefix(text[end:], "error: "); bad {
		return "", errors.New(said)
	}
	if text[end:] != "ok" {
		return "", errors.New("the lab ended before it answered")
	}
	return text[:end], nil
}

// Until asks again and again, ten times a second, until missing returns "". It
// returns how long that took; the error reports what is missing after the limit.
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

// Copy copies a file.
func Copy(from, to string, mode os.FileMode) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, mode)
}
