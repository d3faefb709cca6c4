package transfer

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// Hash names bytes by their SHA-256. In text it carries the algorithm's name,
// "sha256:0123…", so that another one can come later. The zero value means
// "no blob".
type Hash [sha256.Size]byte

const hashPrefix = "sha256:"

// HashOf returns the hash of b.
func HashOf(b []byte) Hash { return sha256.Sum256(b) }

// IsZero reports whether h names nothing.
func (h Hash) IsZero() bool { return h == Hash{} }

// String returns "sha256:" and 64 hexadecimal digits, or "" for the zero Hash.
func (h Hash) String() string {
	if h.IsZero() {
		return ""
	}
	return hashPrefix + hex.EncodeToString(h[:])
}

// ParseHash reads what String writes, and nothing else: a hash has one text.
func ParseHash(s string) (Hash, error) {
	var h Hash
	if s == "" {
		return h, nil
	}
	digits, ok := strings.CutPrefix(s, hashPrefix)
	if !ok || len(digits) != 2*len(h) {
		return Hash{}, fmt.Errorf("hash %.80q: want sha256: and 64 hexadecimal digits", s)
	}
	if _, err := hex.Decode(h[:], []byte(digits)); err != nil {
		return Hash{}, fmt.Errorf("hash %.80q: %w", s, err)
	}
	if h.String() != s {
		return Hash{}, fmt.Errorf("hash %.80q: want lower-case digits that are not all zero", s)
	}
	return h, nil
}

// MarshalText and UnmarshalText make a Hash a string in JSON and msgpack.
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (h *Hash) UnmarshalText(b []byte) error {
	v, err := ParseHash(string(b))
	*h = v
	return err
}
