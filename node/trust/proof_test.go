package trust

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"
)

func TestWhoKnowsTheSecret(t *testing.T) {
	network := func(b byte) *Network {
		s, err := NewSecret(bytes.NewReader(bytes.Repeat([]byte{b}, 32)))
		if err != nil {
			t.Fatal(err)
		}
		n, err := NewNetwork(s)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	id, err := NewIdentity(bytes.NewReader(make([]byte, 32)))
	if err != nil {
		t.Fatal(err)
	}
	creds := func(networks ...*Network) *Credentials {
		c, err := NewCredentials(id, networks...)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	old, now, other := network(1), network(2), network(3)
	c := creds(now, old)
	for what, test := range map[string]struct {
		protos []string
		want   bool
	}{
		"a member":               {creds(now).ClientTLS("", "a", "b").NextProtos, true},
		"of the former secret":   {creds(old).ClientTLS("", "a").NextProtos, true},
		"a stranger":             {creds(other).ClientTLS("", "a").NextProtos, false},
		"a node of before":       {[]string{"a", "h2"}, false},
		"nothing":                {nil, false},
		"no base64":              {[]string{proofPrefix + "!"}, false},
		"too short":              {[]string{proofPrefix}, false},
		"another one in front":   {[]string{other.proof(), now.proof()}, false},
		"a number without proof": {[]string{proofPrefix + base64.RawURLEncoding.EncodeToString(make([]byte, 2*proofHalf))}, false},
	} {
		if got := c.Proves(test.protos); got != test.want {
			t.Errorf("%s: %t, want %t: %q", what, got, test.want, test.protos)
		}
	}
	text, _ := strings.CutPrefix(now.proof(), proofPrefix)
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	for i := range b {
		b[i] ^= 1
		if c.Proves([]string{proofPrefix + base64.RawURLEncoding.EncodeToString(b)}) {
			t.Errorf("damaged at byte %d it proves something", i)
		}
		b[i] ^= 1
	}
	if first := now.proof(); first == now.proof() {
		t.Error("two proofs are the same")
	}
}
