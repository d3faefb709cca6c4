package trust

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"strings"
)

// A client's first message proves that the client knows a network's secret, so that strangers cost
// a server no signature. The proof is among the application protocols that it asks for, where a
// server that does not know it passes it over: proofPrefix and base64url of a number that the client has
// drawn (16 bytes) and the first 16 bytes of HMAC-SHA256 of that. Whoever records one can show it
// again, and gets as far as without.
const (
	proofPrefix = "zorilla-member/1:"
	proofHalf   = 16
)

// proof returns a new one.
func (n *Network) proof() string {
	number := make([]byte, proofHalf)
	rand.Read(number)
	return proofPrefix + base64.RawURLEncoding.EncodeToString(n.prove(number))
}

// prove appends what only members know of a number.
func (n *Network) prove(number []byte) []byte {
	h := hmac.New(sha256.New, n.hello())
	h.Write(number)
	return append(number[:proofHalf:proofHalf], h.Sum(nil)[:proofHalf]...)
}

// Proves reports whether the application protocols that a client asks for prove that it knows the
// secret of an accepted network. Only its certificate says that it is a member.
func (c *Credentials) Proves(protos []string) bool {
	for _, p := range protos {
		text, ok := strings.CutPrefix(p, proofPrefix)
		if !ok {
			continue
		}
		b, err := base64.RawURLEncoding.DecodeString(text)
		if err != nil || len(b) != 2*proofHalf {
			return false
		}
		for _, n := range c.networks {
			if hmac.Equal(n.prove(b[:proofHalf]), b) {
				return true
			}
		}
		return false
	}
	return false
}
