package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"zorilla/internal/seeds"
	"zorilla/node/api"
)

// What strangers send to a node's port is counted and dropped; the node goes
// on, and does not fill its log.
func TestGarbageAtTheNodesPort(t *testing.T) {
	t.Parallel()
	network := realNet(t, 2, "--slots", "1")
	node := network.nodes[1]
	before, err := os.ReadFile(node.log)
	if err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(seeds.One(t), 1))

	packets := garbagePackets(rnd)
	udp := dial(t, "udp", node.listen)
	for _, p := range packets {
		_, _ = udp.Write(p) // an error is the answer to an earlier one
	}
	half := []net.Conn{} // open to the end
	for range 20 {
		half = append(half, dial(t, "tcp", node.listen))
	}
	slow := dial(t, "tcp", node.listen)
	if _, err := slow.Write([]byte{22, 3, 1, 2, 0, 1}); err != nil { // the beginning of a handshake
		t.Fatal(err)
	}
	for _, text := range []string{"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "\x16\x03\x01\xff\xff" + strings.Repeat("x", 1<<16), "\x00", string(noise(rnd, 1<<20))} {
		c := dial(t, "tcp", node.listen)
		_, _ = c.Write([]byte(text)) // it may be cut off
		cutOff(t, c)
	}
	withoutCertificate(t, node.listen)
	if network.nodes[2].says(t, "run", "-q", "-n", "2", "echo", "works") != "works\nworks" {
		t.Error("a job does not run")
	}

	var traffic api.Traffic
	if err := node.until("count what it refused", func(ctx context.Context) bool {
		info, err := node.client.Node(ctx)
		traffic = info.Traffic
		refused := int64(0)
		for _, name := range []string{"strangers refused", "handshakes failed", "connections silent", "connections broken"} {
			refused += traffic.Of("gossip", name)
		}
		return err == nil && traffic.Of("gossip", "packets refused") >= int64(len(packets))/2 && refused >= 28
	}); err != nil {
		t.Errorf("%v; it counts %v", err, traffic)
	}
	for _, c := range append(half, slow) {
		cutOff(t, c) // after some seconds
	}
	if all, err := node.client.Nodes(t.Context()); err != nil || len(all) != 2 {
		t.Errorf("it knows %d nodes, %v", len(all), err)
	}
	after, err := os.ReadFile(node.log)
	if err != nil {
		t.Fatal(err)
	}
	if lines := bytes.Count(after[len(before):], []byte("\n")); lines > 2 {
		t.Errorf("it logged %d lines:\n%s", lines, after[len(before):])
	}
}

func garbagePackets(rnd *rand.Rand) [][]byte {
	var all [][]byte
	for range 200 {
		all = append(all, noise(rnd, 1+rnd.IntN(1400)))
	}
	for kind := range byte(32) { // what memberlist's packets begin with
		all = append(all, []byte{kind}, append([]byte{kind}, noise(rnd, 100)...))
	}
	return append(all, noise(rnd, 65000), bytes.Repeat([]byte{0}, 9000))
}

func noise(rnd *rand.Rand, size int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(rnd.Uint32())
	}
	return b
}

func dial(t *testing.T, kind, address string) net.Conn {
	t.Helper()
	c, err := net.Dial(kind, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// cutOff waits until the other end has closed the connection.
func cutOff(t *testing.T, c net.Conn) {
	t.Helper()
	if err := c.SetDeadline(time.Now().Add(realDeadline)); err != nil {
		t.Fatal(err)
	}
	_, err := io.Copy(io.Discard, c)
	if late, ok := err.(net.Error); ok && late.Timeout() {
		t.Errorf("the connection %v is still open", c.LocalAddr())
	}
}

// withoutCertificate speaks TLS as anybody can.
func withoutCertificate(t *testing.T, address string) {
	t.Helper()
	for _, proto := range []string{"h2", "zorilla-gossip/2", "other"} {
		c := dial(t, "tcp", address)
		s := tls.Client(c, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{proto}})
		if err := s.HandshakeContext(t.Context()); err != nil {
			continue
		}
		// A client of TLS 1.3 learns only now that it is refused.
		_, _ = s.Write([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"))
		if n, err := s.Read(make([]byte, 1)); n != 0 || err == nil {
			t.Errorf("%s: an answer without a certificate", proto)
		}
	}
}

func TestTheSocketWantsTheToken(t *testing.T) {
	t.Parallel()
	network := realNet(t, 1, "--slots", "1")
	node := network.nodes[1]
	if err := node.until("serve its page", func(ctx context.Context) bool { _, err := node.client.Web(ctx, false); return err == nil }); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{socketOf(node.state), node.state + "/client-token", node.state + "/identity.key", node.state + "/secret", node.state + "/journal.db", node.state + "/web-token"} {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, want a mode of 0600", file, info.Mode())
		}
	}
	ask := func(token string) (int, string) {
		tr := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", socketOf(node.state)) }}
		defer tr.CloseIdleConnections()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://node/v1/invite", nil)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := tr.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(b)
	}
	for _, token := range []string{"", "wrong"} {
		if code, text := ask(token); code != http.StatusForbidden || strings.Contains(text, "zor1.") {
			t.Errorf("token %q gets %d %s", token, code, text)
		}
	}
	good, err := os.ReadFile(node.state + "/client-token")
	if err != nil {
		t.Fatal(err)
	}
	if code, text := ask(strings.TrimSpace(string(good))); code != http.StatusOK || !strings.Contains(text, "zor1.") {
		t.Errorf("the token gets %d %s", code, text)
	}
}

// A worker is a stranger to its own node.
func TestWorkersAreNoClients(t *testing.T) {
	t.Parallel()
	network := realNet(t, 1, "--slots", "1")
	node := network.nodes[1]
	script := fmt.Sprintf(`
		for f in client-token secret identity.key web-token journal.db; do cat %[1]s/$f && echo "read $f"; done 2>/dev/null
		find %[1]s -type f ! -path "$HOME/*" ! -path "$TMPDIR/*" 2>/dev/null
		echo x >%[1]s/client-token
		./zorilla invite --state %[1]s && echo invited
		env | grep -E 'SECRET|TOKEN|JOIN|STATE' && echo told
		cat /proc/$PPID/environ 2>/dev/null | grep -q zor1 && echo peeped
		echo done`, node.state)
	cmd := node.command(t, "run", "-i", copyOfProgram(t)+":zorilla", "sh", "-c", script)
	stdout, stderr := start(t, cmd)
	got := rest(t, stdout)
	said := rest(t, stderr)
	ends(t, cmd, 0)
	if got != "done\n" {
		t.Errorf("a worker says %q", got)
	}
	if !regexp.MustCompile(`zorilla: .*(refused|permission denied|only for clients|another user|no node is running)`).MatchString(said) {
		t.Errorf("its client says %q", said)
	}
	if b, err := os.ReadFile(filepath.Join(node.state, "client-token")); err != nil || len(b) < 10 {
		t.Errorf("the token is %q, %v", b, err)
	}
}

// copyOfProgram returns a file that is this program and can be sent.
func copyOfProgram(t *testing.T) string {
	t.Helper()
	path := openDir(t) + "/zorilla"
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}
