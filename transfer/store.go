package transfer

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
)

const (
	// ChunkSize is the size of every chunk of a file but the last.
	ChunkSize = 1 << 20
	// MaxBlob is the size of the largest blob, which is always a manifest.
	MaxBlob = 64 << 20
	// DefaultCache is how many bytes of blobs that nobody pins a store keeps
	// if nothing else is asked for.
	DefaultCache = 8 << 30
)

// Errors that callers act on.
var (
	// ErrNotFound: the blob is not held (any more). Fetch it, again.
	ErrNotFound = errors.New("blob not found")
	// ErrMismatch: the bytes are not those that the hash names.
	ErrMismatch = errors.New("bytes do not match their hash")
	// ErrChanged: a file was written to while it was read. Try again.
	ErrChanged = errors.New("file changed while it was read")
	// ErrManifest: a blob is not a manifest, or one that must not be used.
	ErrManifest = errors.New("invalid manifest")
	// ErrNoHolder: no holder gave a blob in time.
	ErrNoHolder = errors.New("no holder answers with it")
)

// Putter takes blobs in.
type Putter interface {
	// Put keeps the blob, or does nothing if it is held already. It fails
	// with ErrMismatch if h does not name data, and does not keep data itself.
	Put(h Hash, data []byte) error
}

// Getter gives blobs out.
type Getter interface {
	// Get returns the blob, in buf's memory if that is large enough (nil
	// always is allowed), or ErrNotFound. The caller owns what it gets.
	Get(h Hash, buf []byte) ([]byte, error)
}

// Store keeps blobs. All methods may be called from any goroutine. Get has compared what it returns with
// the hash.
type Store interface {
	Putter
	Getter
	// Has reports whether the blob is held, and counts as a use of it.
	Has(h Hash) bool
}

// Pinner keeps a store from evicting blobs that somebody needs.
type Pinner interface {
	// Pin adds the blobs, held or not yet, to what owner needs.
	Pin(owner string, hashes ...Hash)
	// Pinned returns what owner needs, in no order.
	Pinned(owner string) []Hash
	// Unpin lets go of all that owner needed.
	Unpin(owner string)
	// Discard is Unpin for what is of no use any more: blobs that nobody else
	// pins are removed at once, instead of when their room is needed.
	Discard(owner string)
}

// PutterFunc is a function as a Putter.
type PutterFunc func(h Hash, data []byte) error

// Put calls f.
func (f PutterFunc) Put(h Hash, data []byte) error { return f(h, data) }

// GetterFunc is a function as a Getter.
type GetterFunc func(h Hash, buf []byte) ([]byte, error)

// Get calls f.
func (f GetterFunc) Get(h Hash, buf []byte) ([]byte, error) { return f(h, buf) }

// VerifiedFunc is a function as a Getter that compares what it returns with the hash, so
// that nobody else has to.
type VerifiedFunc func(h Hash, buf []byte) ([]byte, error)

// Get calls f.
func (f VerifiedFunc) Get(h Hash, buf []byte) ([]byte, error) { return f(h, buf) }

func (f VerifiedFunc) verified() {}

// verifiedPutter is a Putter that need not hash again what the caller has just hashed.
type verifiedPutter interface {
	PutVerified(h Hash, data []byte) error
}

// putVerified is Put of bytes that the caller has compared with the hash.
func putVerified(p Putter, h Hash, data []byte) error {
	if own, ok := p.(verifiedPutter); ok {
		return own.PutVerified(h, data)
	}
	return p.Put(h, data)
}

// verifiedGetter is a Getter that is no Store and yet has compared what it returns with the hash.
type verifiedGetter interface {
	verified()
}

// getVerified gets a blob and checks it, unless the getter did so itself.
func getVerified(g Getter, h Hash, buf []byte) ([]byte, error) {
	data, err := g.Get(h, buf)
	if err != nil {
		return nil, err
	}
	switch g.(type) {
	case Store, verifiedGetter:
		return data, nil
	}
	return data, check(h, data)
}

// check reports whether h names data, which must not be too large.
func check(h Hash, data []byte) error {
	if len(data) > MaxBlob {
		return fmt.Errorf("blob %s of %d bytes: at most %d", h, len(data), MaxBlob)
	}
	if HashOf(data) != h {
		return fmt.Errorf("blob %s: %w", h, ErrMismatch)
	}
	return nil
}

func notFound(h Hash) error { return fmt.Errorf("%w: %s", ErrNotFound, h) }

// sized returns a slice of n bytes, in buf's memory if that is large enough.
func sized(buf []byte, n int) []byte {
	return slices.Grow(buf[:0], n)[:n]
}

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
