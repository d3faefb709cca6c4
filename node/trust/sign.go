package trust

import (
	"crypto/ed25519"
	"encoding/binary"
	"errors"
	"fmt"

	"zorilla/vicinity"
)

// SignatureSize is the length of what Sign returns.
const SignatureSize = ed25519.PublicKeySize + ed25519.SignatureSize

// ErrSignature is wrapped by every error of Verify.
var ErrSignature = errors.New("bad signature")

// Sign returns a signature of msg for the purpose named by domain. It includes
// the node's public key.
func (id *Identity) Sign(domain string, msg []byte) []byte {
	sig := make([]byte, 0, SignatureSize)
	sig = append(sig, id.public()...)
	return append(sig, ed25519.Sign(id.key(), signed(domain, msg))...)
}

// Verify checks that sig is a signature of msg for the domain by the node
// from. It does not say that the node is a member: a signature proves who
// wrote a message that came over a member's connection.
func Verify(domain string, from vicinity.ID, msg, sig []byte) error {
	if len(sig) != SignatureSize {
		return fmt.Errorf("%w: %d bytes, want %d", ErrSignature, len(sig), SignatureSize)
	}
	key := ed25519.PublicKey(sig[:ed25519.PublicKeySize])
	if vicinity.IDFromKey(key) != from {
		return fmt.Errorf("%w: made by another node than %s", ErrSignature, from.Short())
	}
	if !ed25519.Verify(key, signed(domain, msg), sig[ed25519.PublicKeySize:]) {
		return fmt.Errorf("%w: does not fit the message of %s", ErrSignature, from.Short())
	}
	return nil
}

func signed(domain string, msg []byte) []byte {
	const prefix = "zorilla signature v1"
	b := make([]byte, 0, len(prefix)+4+len(domain)+len(msg))
	b = append(b, prefix...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(domain)))
	b = append(b, domain...)
	return append(b, msg...)
}
