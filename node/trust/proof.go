package trust

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"strings"
)

// A ClientHello proves that the client knows a network's secret, so that a server need not sign
// anything for strangers. The proof is one of the application protocols (ALPN) that the client
// offers, since servers ignore those that they do not know: proofPrefix and, in base64url, a random
// number (16 bytes) and the first 16 bytes of its HMAC-SHA256. A recorded proof can be replayed, which
// gains no more than a handshake at the cost of a signature.
const (
	proofPrefix = "zorilla-member/1:"
	proofHalf   = 16
)

// proof returns a new proof.
func (n *Network) proof() string {
	number := make([]byte, proofHalf)
	rand.Read(number)
	return proofPrefix + base64.RawURLEncoding.EncodeToString(n.prove(number))
}

// prove returns a number with its HMAC, which only members can compute.
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
