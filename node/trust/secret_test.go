package trust

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func testSecret(t testing.TB, fill byte) Secret {
	t.Helper()
	s, err := NewSecret(bytes.NewReader(bytes.Repeat([]byte{fill}, secretSize)))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func testNetwork(t testing.TB, fill byte) *Network {
	t.Helper()
	n, err := NewNetwork(testSecret(t, fill))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func testIdentity(t testing.TB, fill byte) *Identity {
	t.Helper()
	id, err := NewIdentity(bytes.NewReader(bytes.Repeat([]byte{fill}, 32)))
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestSecretText(t *testing.T) {
	s := testSecret(t, 7)
	got, err := ParseSecret(" " + s.Text() + "\n")
	if err != nil || !got.Equal(s) {
		t.Fatalf("read back: %v", err)
	}
	if got.Equal(testSecret(t, 8)) || got.Equal(Secret{}) || !(Secret{}).Equal(Secret{}) {
		t.Fatal("Equal mixes up secrets")
	}
	text := s.Text()
	for name, bad := range map[string]string{
		"cut off":      text[:len(text)-3],
		"mistyped":     text[:len(text)-8] + "x" + text[len(text)-7:],
		"too long":     text + "AAAA",
		"short phrase": "fifteen letters",
		"empty":        "",
		"two lines":    "a phrase that is long enough\nbut goes on",
		"not text":     strings.Repeat("\xff", 20),
		"huge":         strings.Repeat("x", 2000),
		"bad invite":   "zor1.abc",
	} {
		_, err := ParseSecret(bad)
		if !errors.Is(err, ErrSecret) && !errors.Is(err, ErrInvite) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := ParseSecret("fifteen letters"); err == nil || !strings.Contains(err.Error(), "at least 16") {
		t.Errorf("short phrase: %v does not name the minimum", err)
	}
}

func TestPhraseIsStretchedTheSameEverywhere(t *testing.T) {
	s, err := ParseSecret("correct horse battery staple\n")
	if err != nil {
		t.Fatal(err)
	}
	const want = "41d216925096de2b67f19a1d720a2325b2ef04e4b49deb9cfd2052e107b473cd"
	if got := hex.EncodeToString(s.bytes()); got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
}

// The derivation is part of the protocol: a change splits every network.
func TestNetworkDerivationIsFixed(t *testing.T) {
	n := testNetwork(t, 1)
	got := fmt.Sprintf("%s %x %x %x", n.ID(), n.GossipKey(), n.BeaconKey(), n.key().Seed())
	const want = "e3e2844e01e3031e 3ddf66ec258208cd7a1dc95f431f6dc90e1f0716579249890a1f2dc689e02799 06e5c7447b84ce6ec5438447becf6f8fec7a3d6205eafc41d9a57725d98c7761 7daf79905fe52a802dc85345a1aa7c42704ddd97341a5a2ccead8961cecd48fd"
	if got != want {
		t.Fatalf("got  %s\nwant %s", got, want)
	}
	if len(n.GossipKey()) != 32 || bytes.Equal(n.GossipKey(), n.BeaconKey()) {
		t.Fatal("keys are not what they should be")
	}
	n.GossipKey()[0] ^= 1
	if n.GossipKey()[0] != testNetwork(t, 1).GossipKey()[0] {
		t.Fatal("the caller can change the network's key")
	}
	if _, err := NewNetwork(Secret{}); !errors.Is(err, ErrSecret) {
		t.Fatalf("no secret: %v", err)
	}
}

func TestPrintingShowsNoSecret(t *testing.T) {
	s := testSecret(t, 0xab)
	n := testNetwork(t, 0xab)
	id := testIdentity(t, 0xab)
	creds, err := NewCredentials(id, n)
	if err != nil {
		t.Fatal(err)
	}
	inv := Invite{Secret: s, Addrs: []string{"10.0.0.1:5444"}}
	nested := struct {
		secret Secret
		inv    Invite
		net    *Network
		creds  *Credentials
	}{s, inv, n, creds}
	forms := []string{"171 171 171", fmt.Sprint([]byte(id.key()))[1:12], "abababab", "ABABABAB", "0xab, 0xab", s.Text()[6:20], inv.Token()[5:30],
		hex.EncodeToString(n.gossip())[:8], fmt.Sprint(n.gossip())[1:12], hex.EncodeToString(n.key().Seed())[:8], fmt.Sprint([]byte(n.key()))[1:12]}
	for _, v := range []any{s, &s, inv, &inv, nested, &nested, n, id, creds} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%d", "%x", "%X", "%q"} {
			out := fmt.Sprintf(verb, v)
			for _, form := range forms {
				if strings.Contains(out, form) {
					t.Errorf("%T with %s shows %s", v, verb, out)
				}
			}
		}
		j, err := json.Marshal(v)
		for _, form := range forms {
			if err == nil && bytes.Contains(j, []byte(form)) {
				t.Errorf("%T as JSON shows %s", v, j)
			}
		}
	}
	if creds.ID() != id.ID() {
		t.Error("credentials have another ID than the identity")
	}
}
