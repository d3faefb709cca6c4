package trust

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/big"
	"time"
)

// The validity of every certificate. It begins where clocks without a battery
// begin and ends when nobody will care.
var (
	notBefore = time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC)
	notAfter  = time.Date(2190, 1, 1, 0, 0, 0, 0, time.UTC)
)

// Network is everything that follows from a secret.
type Network struct {
	id     string
	gossip hidden[[]byte]
	beacon hidden[[]byte]
	hello  hidden[[]byte]
	key    hidden[ed25519.PrivateKey] // of the authority
	ca     *x509.Certificate
}

// NewNetwork derives the network of a secret. It fails only for the zero
// Secret.
func NewNetwork(s Secret) (*Network, error) {
	if s.IsZero() {
		return nil, fmt.Errorf("%w: there is none", ErrSecret)
	}
	derive := func(purpose string, size int) ([]byte, error) {
		return hkdf.Key(sha256.New, s.bytes(), []byte("zorilla network v1"), purpose, size)
	}
	id, err1 := derive("public id", 8)
	gossip, err2 := derive("gossip", 32)
	beacon, err3 := derive("beacon", 32)
	hello, err4 := derive("hello", 32)
	seed, err5 := derive("authority", ed25519.SeedSize)
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		return nil, fmt.Errorf("derive network keys: %w", err)
	}
	n := &Network{id: hex.EncodeToString(id), gossip: hide(gossip), beacon: hide(beacon), hello: hide(hello), key: hide(ed25519.NewKeyFromSeed(seed))}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "zorilla network " + n.id},
		NotBefore:             notBefore,
		NotAfter:              notAfter,
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, n.key().Public(), n.key())
	if err != nil {
		return nil, fmt.Errorf("make network certificate: %w", err)
	}
	n.ca, err = x509.ParseCertificate(der)
	return n, err
}

// ID is public: 16 hexadecimal digits that are the same at all members and
// say nothing about the secret.
func (n *Network) ID() string { return n.id }

// GossipKey returns the 32 bytes that encrypt gossip packets.
func (n *Network) GossipKey() []byte { return append([]byte(nil), n.gossip()...) }

// BeaconKey returns the 32 bytes that seal beacons on a local network.
func (n *Network) BeaconKey() []byte { return append([]byte(nil), n.beacon()...) }

// String names the network by its public ID.
func (n *Network) String() string { return "network " + n.id }

// Format keeps the keys out of every verb.
func (n *Network) Format(f fmt.State, _ rune) { io.WriteString(f, n.String()) }

// sign makes the certificate that says that the key belongs to the network.
// The same key always gets the same certificate.
func (n *Network) sign(key ed25519.PublicKey, name string) ([]byte, error) {
	sum := sha256.Sum256(key)
	sum[0] &= 0x7f // serial numbers are positive and at most 20 bytes
	sum[0] |= 0x40
	return x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: new(big.Int).SetBytes(sum[:16]),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    notBefore,
		NotAfter:     notAfter,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, n.ca, key, n.key())
}
