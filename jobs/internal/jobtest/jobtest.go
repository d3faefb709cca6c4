// Package jobtest has names of nodes, times and signatures for the tests of package
// jobs and those below it.
package jobtest

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"math/rand/v2"
	"time"

	"zorilla/vicinity"
)

// Start is when tests begin.
var Start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Signer signs as nodes do: the key, the signature.
type Signer struct {
	ID  vicinity.ID
	Key ed25519.PrivateKey
}

// Node returns a node ID for tests; different numbers have different short
// IDs.
func Node(n int) vicinity.ID {
	const digits = "abcdefghijklmnopqrstuvwxyz234567"
	return vicinity.ID("z" + string([]byte{digits[n/1024%32], digits[n/32%32], digits[n%32], 'a'}) + "aaaaaaaaaaaaaaaaaaaaaa")
}

// Rand is random, the same each time.
func Rand() *rand.Rand { return rand.New(rand.NewPCG(1, 1)) }

// NewSigner makes the node of a seed.
func NewSigner(seed byte) Signer {
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
	return Signer{vicinity.IDFromKey(key.Public().(ed25519.PublicKey)), key}
}

// Sign puts the key before the signature, so that Verify needs nothing else.
func (s Signer) Sign(domain string, msg []byte) []byte {
	public := s.Key.Public().(ed25519.PublicKey)
	return append(append([]byte{}, public...), ed25519.Sign(s.Key, append([]byte(domain), msg...))...)
}

// Verify checks a signature of Sign.
func Verify(domain string, from vicinity.ID, msg, sig []byte) error {
	public := ed25519.PublicKey(sig[:ed25519.PublicKeySize])
	if vicinity.IDFromKey(public) != from || !ed25519.Verify(public, append([]byte(domain), msg...), sig[ed25519.PublicKeySize:]) {
		return errors.New("bad signature")
	}
	return nil
}
