package node

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"zorilla/internal/codec"
	"zorilla/vicinity"
)

// alive runs a node until the test ends; ended has what Run returns.
type alive struct {
	*Node
	cancel context.CancelFunc
	ended  chan error
}

func start(t *testing.T, cfg Config) *alive {
	t.Helper()
	if cfg.Listen == "" {
		cfg.Listen = "127.0.0.1:0"
	}
	cfg.Web, cfg.Log = "none", zerolog.New(zerolog.NewTestWriter(t)).Level(zerolog.InfoLevel)
	a := &alive{Node: testNode(t, cfg), ended: make(chan error, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	a.cancel = cancel
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.ended <- a.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return a
}

func (a *alive) ready(t *testing.T) *alive {
	t.Helper()
	select {
	case <-a.Ready():
	case err := <-a.ended:
		t.Fatalf("the node has ended: %v", err)
	case <-time.After(30 * time.Second):
		t.Fatal("the node does not become ready")
	}
	return a
}

// gone waits for the end and returns why it has come.
func (a *alive) gone(t *testing.T) error {
	t.Helper()
	select {
	case err := <-a.ended:
		return err
	case <-time.After(30 * time.Second):
		t.Fatal("the node goes on")
		return nil
	}
}

// lives wants the node to answer its clients.
func (a *alive) lives(t *testing.T) {
	t.Helper()
	select {
	case err := <-a.ended:
		t.Fatalf("the node has ended: %v", err)
	default:
	}
	if _, err := a.Service().Node(t.Context()); err != nil {
		t.Error(err)
	}
}

// members waits until a node knows so many others.
func (a *alive) members(t *testing.T, count int) {
	t.Helper()
	for {
		changed := a.net.near.Changed()
		if len(a.net.overlay.Members()) == count {
			return
		}
		select {
		case <-changed:
		case <-time.After(30 * time.Second):
			t.Fatalf("it knows %d members, want %d", len(a.net.overlay.Members()), count)
		}
	}
}

// copyOf copies files of a state directory to a new one.
func copyOf(t *testing.T, state string, names ...string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "state")
	if err := os.Mkdir(to, 0o711); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		b, err := os.ReadFile(filepath.Join(state, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(to, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

func wantTwin(t *testing.T, err error, state string) {
	t.Helper()
	if !errors.Is(err, vicinity.ErrTwin) || !strings.Contains(err.Error(), "identity.key, journal.db and work in "+state) || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v, want that another node has this identity, and the way out", err)
	}
}

func TestTheNewerOfTwoNodesWithOneKeyStops(t *testing.T) {
	t.Run("it finds the other where that was", func(t *testing.T) {
		a := start(t, Config{}).ready(t)
		twin := copyOf(t, a.cfg.State, "identity.key", "secret", "peers")
		wantTwin(t, start(t, Config{State: twin, Listen: "127.0.0.2:0"}).gone(t), twin)
		for _, touched := range []string{"journal.db", "work", "cache", "owner.json"} {
			if _, err := os.Stat(filepath.Join(twin, touched)); err == nil {
				t.Errorf("%s was touched", touched)
			}
		}
		a.lives(t)
	})
	t.Run("a member tells it", func(t *testing.T) {
		a := start(t, Config{}).ready(t)
		b := start(t, Config{Secret: a.invite.Text(), Join: []string{a.net.overlay.Self().Addrs[0]}}).ready(t)
		a.members(t, 1)
		twin := copyOf(t, b.cfg.State, "identity.key", "secret")
		wantTwin(t, start(t, Config{State: twin, Join: []string{a.net.overlay.Self().Addrs[0]}}).gone(t), twin)
		b.lives(t)
		a.members(t, 1)
	})
	t.Run("both run when they hear of each other", func(t *testing.T) {
		hub, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		hub.Close() // its port is free; nobody is there yet
		older := start(t, Config{Join: []string{}}).ready(t)
		older.cancel() // for a state directory with a key and a secret
		if err := older.gone(t); err != nil {
			t.Fatal(err)
		}
		at := []string{hub.Addr().String()}
		older = start(t, Config{State: older.cfg.State, Join: at}).ready(t)
		newer := start(t, Config{State: copyOf(t, older.cfg.State, "identity.key", "secret"), Listen: "127.0.0.2:0", Join: at}).ready(t)
		a := start(t, Config{Secret: older.invite.Text(), Listen: at[0]}).ready(t)
		wantTwin(t, newer.gone(t), newer.cfg.State)
		older.lives(t)
		a.members(t, 1)
		if _, known := a.net.overlay.Member(older.creds.ID()); !known {
			t.Error("the older one is no member")
		}
	})
}

// Whatever others say, only a node that proves to have the key stops another.
func TestFalseHintsStopNobody(t *testing.T) {
	a := start(t, Config{}).ready(t)
	self := a.net.overlay.Self().Addrs[0]
	b := start(t, Config{Secret: a.invite.Text(), Join: []string{self}}).ready(t)
	a.members(t, 1)
	listen := func(serve func(net.Conn)) string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go serve(c)
			}
		}()
		return l.Addr().String()
	}
	silent := listen(func(c net.Conn) { io.Copy(io.Discard, c) })
	relay := listen(func(c net.Conn) { // to the node itself
		defer c.Close()
		back, err := net.Dial("tcp", self)
		if err != nil {
			return
		}
		defer back.Close()
		go io.Copy(back, c)
		io.Copy(c, back)
	})
	// A member that says whatever it likes of others.
	b.net.twins.known = func(vicinity.ID) []string { return []string{relay, silent, self, "127.0.0.1:1", "nonsense"} }
	b.net.twins.mu.Lock()
	b.net.twins.incarnation = incarnation{Settled: true}
	b.net.twins.mu.Unlock()
	a.net.twins.look(t.Context(), []string{silent, relay, self, "127.0.0.1:1", b.net.overlay.Self().Addrs[0], "", "nonsense"})
	select {
	case err := <-a.net.twins.over:
		t.Errorf("the node was to stop: %v", err)
	default:
	}
	if n := len(a.net.twins.asked); n != 0 {
		t.Errorf("%d challenges are remembered", n)
	}
	a.lives(t)
}

// A node that looks for its twin ends at once if it is told to, does not wait
// for silent addresses for ever, and asks nobody with a key that it just made.
func TestAlone(t *testing.T) {
	a := start(t, Config{}).ready(t)
	a.cancel()
	if err := a.gone(t); err != nil {
		t.Fatal(err)
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	came := make(chan struct{}, 100)
	go func() {
		for {
			c, err := silent.Accept()
			if err != nil {
				return
			}
			defer c.Close()
			came <- struct{}{}
		}
	}()
	for _, name := range []string{"journal.db", "owner.json"} {
		os.Remove(filepath.Join(a.cfg.State, name))
	}
	again := Config{State: a.cfg.State, Join: []string{silent.Addr().String()}}
	b := start(t, again)
	<-came
	b.cancel()
	if err := b.gone(t); err != nil {
		t.Errorf("told to end: %v", err)
	}
	if _, err := os.Stat(filepath.Join(a.cfg.State, "journal.db")); err == nil {
		t.Error("the journal was made before it was alone")
	}
	start(t, again).ready(t)
	began := time.Now()
	start(t, Config{Secret: b.invite.Text(), Join: again.Join}).ready(t)
	if took := time.Since(began); took > twinWithin {
		t.Errorf("a new key was looked for, for %v", took)
	}
}

// Whoever passes a node's own question on to it, but not before the node has given
// up, stops nobody; a question of a twin counts whenever it comes.
func TestOwnQuestionThatComesLateStopsNobody(t *testing.T) {
	a := newTwins("self", "", time.Unix(2, 0), nil, zerolog.Nop())
	ask := func(l incarnation) twinTold {
		t.Helper()
		r := httptest.NewRequest(http.MethodPost, pathTwin, bytes.NewReader(codec.MustMarshal(twinAsk{[]byte("forgotten"), l})))
		w := httptest.NewRecorder()
		a.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), askerKey{}, a.self)))
		var told twinTold
		if err := codec.Unmarshal(w.Body.Bytes(), &told); err != nil {
			t.Fatal(err)
		}
		return told
	}
	for _, settled := range []bool{false, true} {
		a.incarnation.Settled = settled
		if told := ask(a.incarnation); told.Self || told.Incarnation == nil || len(a.over) > 0 {
			t.Errorf("its own question was answered with %+v, and %d reasons to stop", told, len(a.over))
		}
	}
	if ask(incarnation{Started: 1, Settled: true, Nonce: []byte("other")}); len(a.over) != 1 {
		t.Error("an older twin did not stop it")
	}
}

// Of two lives exactly one yields, whatever their clocks say.
func TestOneOfTwoTwinsYields(t *testing.T) {
	lives := []incarnation{
		{Started: 1, Settled: true, Nonce: []byte("b")}, {Started: 1, Settled: true, Nonce: []byte("c")}, {Started: 2, Settled: true, Nonce: []byte("a")},
		{Started: 0, Nonce: []byte("a")}, {Started: 3, Nonce: []byte("d")},
	}
	for i, older := range lives {
		for _, newer := range lives[i+1:] {
			if older.yields(newer) || !newer.yields(older) {
				t.Errorf("%+v and %+v: the newer one has to yield", older, newer)
			}
		}
	}
}

// A node that comes back at another address, or at several, is not its own twin.
func TestNodeThatMovedIsNoTwin(t *testing.T) {
	a := start(t, Config{}).ready(t)
	b := start(t, Config{Secret: a.invite.Text(), Join: []string{a.net.overlay.Self().Addrs[0]}}).ready(t)
	a.members(t, 1)
	for _, listen := range []string{"127.0.0.2:0", "0.0.0.0:0"} {
		b.cancel()
		if err := b.gone(t); err != nil {
			t.Fatal(err)
		}
		b = start(t, Config{State: b.cfg.State, Listen: listen}).ready(t)
		b.members(t, 1)
		b.net.twins.look(t.Context(), b.state.formerAddrs())
		b.lives(t)
		a.lives(t)
	}
}
