package trust

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"

	"zorilla/vicinity"
)

// Identity is a node's own key.
type Identity struct {
	key hidden[ed25519.PrivateKey]
	id  vicinity.ID
}

// NewIdentity makes an identity out of 32 bytes of rand, which must be a
// cryptographic source unless it is for a test.
func NewIdentity(rand io.Reader) (*Identity, error) {
	seed := make([]byte, ed25519.SeedSize)
	if _, err := io.ReadFull(rand, seed); err != nil {
		return nil, fmt.Errorf("make node key: %w", err)
	}
	return identityOf(ed25519.NewKeyFromSeed(seed)), nil
}

func identityOf(key ed25519.PrivateKey) *Identity {
	return &Identity{key: hide(key), id: vicinity.IDFromKey(key.Public().(ed25519.PublicKey))}
}

// LoadIdentity reads the node key at path (PEM, PKCS #8) and makes it, and its
// directory, if there is none. It refuses a file that others than its owner
// can read or write; that error wraps ErrExposed.
func LoadIdentity(path string) (*Identity, error) {
	b, err := loadOrCreate(path, func() ([]byte, error) {
		id, err := NewIdentity(rand.Reader)
		if err != nil {
			return nil, err
		}
		der, err := x509.MarshalPKCS8PrivateKey(id.key())
		return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), err
	})
	if err != nil {
		return nil, fmt.Errorf("node key: %w", err)
	}
	key, err := parseKey(b)
	if err != nil {
		return nil, fmt.Errorf("node key %s: %w: restore it, or remove it to become a new node", path, err)
	}
	return identityOf(key), nil
}

func parseKey(b []byte) (ed25519.PrivateKey, error) {
	block, _ := pem.Decode(b)
	if block == nil || block.Type != "PRIVATE KEY" {
		return nil, errors.New("holds no PEM private key")
	}
	v, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	key, ok := v.(ed25519.PrivateKey)
	if !ok {
		return nil, errors.New("is not an Ed25519 key")
	}
	return key, nil
}

func (id *Identity) public() ed25519.PublicKey { return id.key().Public().(ed25519.PublicKey) }

// ID returns the node ID that belongs to the key.
func (id *Identity) ID() vicinity.ID { return id.id }

// String returns the node ID.
func (id *Identity) String() string { return string(id.id) }

// Format keeps the key out of every verb.
func (id *Identity) Format(f fmt.State, _ rune) { io.WriteString(f, id.String()) }
