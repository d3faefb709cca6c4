package trust

import (
	"crypto/ed25519"
	"crypto/tls"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"zorilla/vicinity"
)

func testCredentials(t testing.TB, id byte, networks ...byte) *Credentials {
	t.Helper()
	var list []*Network
	for _, n := range networks {
		list = append(list, testNetwork(t, n))
	}
	c, err := NewCredentials(testIdentity(t, id), list...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// handshake returns how both ends of a connection see it, after a byte has
// travelled back: a TLS 1.3 client learns only then that it was refused.
func handshake(a, b net.Conn, client, server *tls.Config) (c, s tls.ConnectionState, cerr, serr error) {
	defer a.Close()
	defer b.Close()
	cc, sc := tls.Client(a, client), tls.Server(b, server)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if serr = sc.Handshake(); serr == nil {
			_, serr = sc.Write([]byte{1})
		}
	}()
	if cerr = cc.Handshake(); cerr == nil {
		_, cerr = cc.Read(make([]byte, 1))
	}
	<-done
	return cc.ConnectionState(), sc.ConnectionState(), cerr, serr
}

// shake is handshake over a real connection, which has room for what nobody
// reads after a failure.
func shake(t *testing.T, client, server *tls.Config) (c, s tls.ConnectionState, cerr, serr error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	a, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	b, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []net.Conn{a, b} {
		if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	return handshake(a, b, client, server)
}

func TestMembersConnect(t *testing.T) {
	// A bubble begins in the year 2000, which certificates must not mind.
	synctest.Test(t, func(t *testing.T) {
		alice, bob := testCredentials(t, 1, 9), testCredentials(t, 2, 9)
		for _, expect := range []vicinity.ID{"", bob.ID()} {
			a, b := net.Pipe()
			cs, ss, cerr, serr := handshake(a, b, alice.ClientTLS(expect, "b"), bob.ServerTLS("a", "b"))
			if cerr != nil || serr != nil {
				t.Fatal(cerr, serr)
			}
			if id, err := PeerID(cs); err != nil || id != bob.ID() {
				t.Fatalf("client sees %v, %v", id, err)
			}
			if id, err := PeerID(ss); err != nil || id != alice.ID() || ss.NegotiatedProtocol != "b" {
				t.Fatalf("server sees %v, %v, %q", id, err, ss.NegotiatedProtocol)
			}
		}
	})
}

// A client that knows several application protocols gets the one that the server likes best.
func TestProtocolsAreAgreedOn(t *testing.T) {
	alice, bob := testCredentials(t, 1, 9), testCredentials(t, 2, 9)
	for _, c := range []struct {
		server, client []string
		want           string
	}{{[]string{"new", "old"}, []string{"old", "new"}, "new"}, {[]string{"old"}, []string{"new", "old"}, "old"}, {[]string{"old"}, []string{"new"}, ""}} {
		cs, ss, cerr, serr := shake(t, alice.ClientTLS("", c.client...), bob.ServerTLS(c.server...))
		if c.want == "" {
			if cerr == nil || serr == nil {
				t.Errorf("%q and %q agree: %v, %v", c.client, c.server, cerr, serr)
			}
			continue
		}
		if cerr != nil || serr != nil || cs.NegotiatedProtocol != c.want || ss.NegotiatedProtocol != c.want {
			t.Errorf("%q and %q agree on %q, %q: %v, %v", c.client, c.server, cs.NegotiatedProtocol, ss.NegotiatedProtocol, cerr, serr)
		}
	}
}

func TestStrangersAreRefused(t *testing.T) {
	member := testCredentials(t, 1, 9)
	for name, other := range map[string]*Credentials{
		"other network":          testCredentials(t, 2, 8),
		"accepts us, not we him": testCredentials(t, 2, 8, 9),
	} {
		_, _, cerr, serr := shake(t, other.ClientTLS("", "a"), member.ServerTLS("a"))
		if !errors.Is(HandshakeError(cerr), ErrStranger) || !errors.Is(HandshakeError(serr), ErrStranger) {
			t.Errorf("%s as client: client %v, server %v", name, cerr, serr)
		}
		_, _, cerr, serr = shake(t, member.ClientTLS("", "a"), other.ServerTLS("a"))
		if !errors.Is(HandshakeError(cerr), ErrStranger) || !errors.Is(HandshakeError(serr), ErrStranger) {
			t.Errorf("%s as server: client %v, server %v", name, cerr, serr)
		}
	}
	if _, err := PeerID(tls.ConnectionState{}); !errors.Is(err, ErrStranger) {
		t.Errorf("no certificate: %v", err)
	}
}

func TestSeveralNetworksAreAccepted(t *testing.T) {
	for _, other := range []*Credentials{testCredentials(t, 2, 8), testCredentials(t, 2, 7), testCredentials(t, 2, 9, 8)} {
		rotating := testCredentials(t, 1, 8, 7, 9)
		_, _, _, serr := shake(t, other.ClientTLS("", "a"), rotating.ServerTLS("a"))
		_, _, cerr, _ := shake(t, rotating.ClientTLS("", "a"), other.ServerTLS("a"))
		// The other side may refuse us, but we refuse nobody.
		for _, err := range []error{serr, cerr} {
			if errors.Is(err, ErrStranger) {
				t.Error(err)
			}
		}
	}
}

func TestBadPeersAreRefused(t *testing.T) {
	alice, bob, eve := testCredentials(t, 1, 9), testCredentials(t, 2, 9), testCredentials(t, 3, 9)
	_, _, cerr, _ := shake(t, alice.ClientTLS(eve.ID(), "a"), bob.ServerTLS("a"))
	if !errors.Is(cerr, ErrWrongNode) || errors.Is(HandshakeError(cerr), ErrStranger) {
		t.Errorf("another member than expected: %v", cerr)
	}

	none := alice.ClientTLS("", "a")
	none.Certificates = nil
	if _, _, _, serr := shake(t, none, bob.ServerTLS("a")); serr == nil {
		t.Error("client without a certificate was accepted")
	}

	// Somebody who saw alice's certificate but has another key.
	thief := alice.ClientTLS("", "a")
	stolen := alice.leaf()
	stolen.PrivateKey = eve.leaf().PrivateKey
	thief.Certificates = []tls.Certificate{stolen}
	if _, _, _, serr := shake(t, thief, bob.ServerTLS("a")); serr == nil {
		t.Error("client with a stolen certificate was accepted")
	}

	// A member that signs a certificate for another node's key with its own
	// node key, which is no authority.
	chain := eve.ClientTLS("", "a")
	chain.Certificates = []tls.Certificate{{Certificate: append([][]byte{eve.leaf().Certificate[0]}, alice.leaf().Certificate...), PrivateKey: eve.leaf().PrivateKey}}
	if _, _, _, serr := shake(t, chain, bob.ServerTLS("a")); !errors.Is(serr, ErrStranger) {
		t.Errorf("client with a chain: %v", serr)
	}

	for _, protos := range [][]string{nil, {"zzz"}} {
		odd := alice.ClientTLS("", "a")
		odd.NextProtos = protos
		if _, _, _, serr := shake(t, odd, bob.ServerTLS("a")); serr == nil {
			t.Errorf("client that speaks %q was accepted", protos)
		}
	}

	old := alice.ClientTLS("", "a")
	old.MinVersion, old.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	if _, _, _, serr := shake(t, old, bob.ServerTLS("a")); serr == nil {
		t.Error("TLS 1.2 was accepted")
	}
}

func TestCertificatesAreDeterministic(t *testing.T) {
	a, b := testCredentials(t, 1, 9), testCredentials(t, 1, 9)
	if string(a.leaf().Certificate[0]) != string(b.leaf().Certificate[0]) {
		t.Error("the same node and network give two certificates")
	}
	if a.ID() != vicinity.IDFromKey(a.leaf().PrivateKey.(ed25519.PrivateKey).Public().(ed25519.PublicKey)) {
		t.Error("ID is not the hash of the key")
	}
	if _, err := NewCredentials(testIdentity(t, 1)); err == nil {
		t.Error("credentials without a network")
	}
}
