package node

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"zorilla/internal/needs"
	"zorilla/jobs"
	"zorilla/node/api"
	"zorilla/node/trust"
)

func testNode(t *testing.T, cfg Config) *Node {
	t.Helper()
	if cfg.State == "" {
		cfg.State = filepath.Join(t.TempDir(), "state")
	}
	n, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestStateDirectoryIsForOneNode(t *testing.T) {
	n := testNode(t, Config{})
	lock, err := n.state.open()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stateDir(n.cfg.State).open(); err == nil || !strings.Contains(err.Error(), "--state-dir") {
		t.Fatalf("a second node gets %v, want an error that names the way out", err)
	}
	lock.Close()
	again, err := n.state.open()
	if err != nil {
		t.Fatalf("after the first has ended: %v", err)
	}
	again.Close()
	if _, err := stateDir("relative").open(); err == nil {
		t.Fatal("a relative state directory was accepted")
	}
}

// A lock that another node has made in the place of a removed one is that node's until it ends.
func TestLockOfAnotherNode(t *testing.T) {
	d := stateDir(t.TempDir())
	lock, err := d.open()
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if again, err := lock.renew(); again || err != nil {
		t.Errorf("of a lock that is there: %v, %v", again, err)
	}
	if err := os.Remove(d.file("lock")); err != nil {
		t.Fatal(err)
	}
	other, err := d.open()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := lock.renew(); again || err == nil || !strings.Contains(err.Error(), "is using it already") {
		t.Errorf("of another node's lock: %v, %v", again, err)
	}
	other.Close()
	if again, err := lock.renew(); !again || err != nil {
		t.Errorf("after the other has ended: %v, %v", again, err)
	}
	if _, err := d.open(); err == nil {
		t.Error("another node takes the directory")
	}
}

// A state directory that somebody else has prepared, or can change, is refused: it would be that
// user's network, with that user's settings.
func TestStateDirectoryOfSomebodyElse(t *testing.T) {
	refused := func(name string, prepare func(dir string) error, want string) {
		t.Helper()
		dir := filepath.Join(t.TempDir(), "s")
		err := os.Mkdir(dir, 0o700)
		for _, file := range believed {
			err = errors.Join(err, os.WriteFile(filepath.Join(dir, file), nil, 0o600))
		}
		if err := errors.Join(err, os.WriteFile(filepath.Join(dir, "journal.db.log-7"), nil, 0o600), os.WriteFile(filepath.Join(dir, "notes"), nil, 0o666)); err != nil {
			t.Fatal(err)
		}
		lock, err := stateDir(dir).open()
		if err != nil {
			t.Fatalf("%s: before it: %v", name, err)
		}
		lock.Close()
		if err := prepare(dir); err != nil {
			t.Fatal(err)
		}
		if _, err := stateDir(dir).open(); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "--state-dir") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ = bytes.Cut(text, []byte("# State directory"))
	for _, m := range regexp.MustCompile(`(?m)^//\t([a-z.-]+)`).FindAllSubmatch(text, -1) {
		if !slices.Contains(believed, string(m[1])) {
			t.Errorf("nobody looks whose %s is", m[1])
		}
	}
	files := append(slices.Clone(believed), "journal.db.log-7")
	for _, file := range files {
		refused(file, func(dir string) error { return os.Chmod(filepath.Join(dir, file), 0o620) }, file+" can be changed by others than user ")
	}
	refused("the directory", func(dir string) error { return os.Chmod(dir, 0o777) }, "can be changed by others")
	refused("the one above", func(dir string) error { return os.Chmod(filepath.Dir(dir), 0o777) }, "can be changed by everybody")
	needs.Root(t)
	const somebody = 1234
	for _, file := range files {
		refused(file, func(dir string) error { return os.Chown(filepath.Join(dir, file), somebody, 0) }, file+" belongs to user 1234, and you are 0")
	}
	refused("the directory", func(dir string) error { return os.Chown(dir, somebody, 0) }, "belongs to user 1234")
	refused("the one above", func(dir string) error { return os.Chown(filepath.Dir(dir), somebody, 0) }, "belongs to user 1234")
	refused("a link", func(dir string) error {
		return errors.Join(os.Rename(dir, dir+"2"), os.Symlink(dir+"2", dir), os.Lchown(dir, somebody, 0))
	}, "belongs to user 1234")
}

func secretOf(n *Node) (trust.Secret, []string, error) {
	return n.state.secret(n.cfg.Secret, n.cfg.Join, n.log)
}

func TestSecretIsMadeKeptAndReplaced(t *testing.T) {
	n := testNode(t, Config{})
	lock, err := n.state.open()
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	first, seeds, err := secretOf(n)
	if err != nil || len(seeds) != 0 {
		t.Fatalf("got %v, %v", seeds, err)
	}
	if again, _, err := secretOf(n); err != nil || !again.Equal(first) {
		t.Fatalf("the secret is another one at the second start: %v", err)
	}
	if err := n.state.savePeers([]string{"10.0.0.1:5444", "10.0.0.2:5444"}, nil); err != nil {
		t.Fatal(err)
	}
	if got := n.state.loadPeers(); len(got) != 2 || got[1] != "10.0.0.2:5444" {
		t.Fatalf("got peers %v", got)
	}
	other, err := trust.SecretFromPhrase("a phrase of more than sixteen characters")
	if err != nil {
		t.Fatal(err)
	}
	n.cfg.Join = []string{trust.Invite{Secret: other, Addrs: []string{"10.0.0.9:5444"}}.Token(), "10.0.0.8:5444"}
	got, seeds, err := secretOf(n)
	if err != nil || !got.Equal(other) || strings.Join(seeds, " ") != "10.0.0.9:5444 10.0.0.8:5444" {
		t.Fatalf("got %v, %v, want the network of the token and both addresses", seeds, err)
	}
	if peers := n.state.loadPeers(); len(peers) != 0 {
		t.Fatalf("peers of the old network are still there: %v", peers)
	}
	n.cfg.Join = nil
	if kept, _, err := secretOf(n); err != nil || !kept.Equal(other) {
		t.Fatalf("the new network is forgotten at the next start: %v", err)
	}
	n.cfg.Secret = "too short"
	if _, _, err := secretOf(n); err == nil || !strings.Contains(err.Error(), "16") {
		t.Fatalf("a short phrase gives %v", err)
	}
	n.cfg.Secret = "another phrase, long enough this time"
	n.cfg.Join = []string{trust.Invite{Secret: other, Addrs: []string{"10.0.0.9:5444"}}.Token()}
	if _, _, err := secretOf(n); err == nil || !strings.Contains(err.Error(), "different networks") {
		t.Fatalf("two secrets give %v", err)
	}
}

func TestPeersFileMayHoldAnything(t *testing.T) {
	n := testNode(t, Config{State: t.TempDir()})
	text := "10.0.0.1:5444\n\nrubbish\n[::1]:1\n10.0.0.1\n" + strings.Repeat("x", 1000)
	if err := os.WriteFile(filepath.Join(n.cfg.State, "peers"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := n.state.loadPeers(); strings.Join(got, " ") != "10.0.0.1:5444 [::1]:1" {
		t.Fatalf("got %q", got)
	}
}

func TestPageTakesTheNextFreePort(t *testing.T) {
	first, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	second, err := listenNear(first.Addr().String(), 100)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if second.Addr().String() == first.Addr().String() {
		t.Fatal("both have the same port")
	}
	if _, err := listenNear(first.Addr().String(), 1); err == nil || !strings.Contains(err.Error(), "is taken") {
		t.Fatalf("a port that was asked for and is taken gives %v", err)
	}
	for _, bad := range []string{"", "localhost", "127.0.0.1:http", "127.0.0.1:99999"} {
		if _, err := listenNear(bad, 1); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

// A port that is taken is told before anything is made: a phrase takes seconds
// to stretch on a busy machine.
func TestTakenPortsAreToldFirst(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	busy := taken.Addr().String()
	for option, cfg := range map[string]Config{"--listen": {Listen: busy, Web: "none"}, "--web": {Listen: "127.0.0.1:0", Web: busy}} {
		cfg.Secret = "a phrase of more than sixteen characters"
		n := testNode(t, cfg)
		if err := n.Run(t.Context()); err == nil || !strings.Contains(err.Error(), option) || !strings.Contains(err.Error(), busy[len("127.0.0.1:"):]) {
			t.Errorf("got %v, want what to do with %s", err, option)
		}
		for _, made := range []string{"secret", "identity.key", "journal.db"} {
			if _, err := os.Stat(filepath.Join(n.cfg.State, made)); err == nil {
				t.Errorf("%s: %s was made before", option, made)
			}
		}
	}
}

// TestGroupEndsTogether: one failure ends all, and stop waits for all.
func TestGroupEndsTogether(t *testing.T) {
	g := newGroup(t.Context())
	ended := 0
	g.run(func(ctx context.Context) error { <-ctx.Done(); ended++; return nil })
	g.run(func(context.Context) error { return os.ErrClosed })
	<-g.ctx.Done()
	if err := g.stop(nil); ended != 1 || err != os.ErrClosed {
		t.Fatalf("%d ended, failure %v", ended, err)
	}
	calm := newGroup(t.Context())
	calm.run(func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
	if err := calm.stop(nil); err != nil {
		t.Fatalf("stopping is no failure, got %v", err)
	}
}

// TestTwoNodes runs two real nodes of one process on loopback: they find each
// other, and what is asked of one about the other's job is forwarded.
func TestTwoNodes(t *testing.T) {
	run := func(cfg Config) *Node {
		cfg.Log = zerolog.New(zerolog.NewTestWriter(t)).Level(zerolog.InfoLevel) // memberlist goes on at debug level after the end
		n := testNode(t, cfg)
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- n.Run(ctx) }()
		t.Cleanup(func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
		select {
		case <-n.Ready():
		case err := <-done:
			t.Fatal(err)
		}
		return n
	}
	a := run(Config{Listen: "127.0.0.1:0", Web: "127.0.0.1:0", Owner: Owner{Name: "a", Slots: 1}})
	token, err := a.Service().Invite(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b := run(Config{Listen: "127.0.0.1:0", Web: "none", Join: []string{token}, Owner: Owner{Name: "b", Slots: 1}})
	for {
		changed := b.Vicinity().Changed()
		if nodes, err := b.Service().Nodes(t.Context()); err == nil && len(nodes) == 2 {
			break
		}
		select {
		case <-changed:
		case <-t.Context().Done():
			t.Fatal("they do not find each other")
		}
	}
	id, err := a.Service().Submit(t.Context(), jobs.Spec{Args: []string{"true"}, Min: 1, Max: 1, Slots: 100})
	if err != nil {
		t.Fatal(err)
	}
	if st, err := b.Service().Job(t.Context(), string(id)); err != nil || st.ID != id || st.LastKnown {
		t.Fatalf("asked of the other node: %+v, %v", st, err)
	}
	if all, err := b.Service().Jobs(t.Context(), true); err != nil || len(all) != 1 {
		t.Fatalf("the list of all jobs has %d, %v", len(all), err)
	}
	if err := b.Service().Cancel(t.Context(), string(id), true); err != nil {
		t.Fatal(err)
	}
	if st, err := a.Service().Job(t.Context(), "last"); err != nil || st.State != jobs.Cancelled {
		t.Fatalf("got %s, %v", st.State, err)
	}
	if _, err := b.Service().Job(t.Context(), "nosuch"); err == nil {
		t.Fatal("an unknown job was found")
	}
	if _, err := api.NewClient(b.net.client.Transport, peerURL(a.Self().ID)+apiPrefix).Invite(t.Context()); err == nil {
		t.Fatal("a node gave its invitation to another node")
	}
	if url, err := a.Service().Web(t.Context(), false); err != nil || !strings.HasPrefix(url, "http://127.0.0.1:") {
		t.Fatalf("got page %q, %v", url, err)
	}
}
