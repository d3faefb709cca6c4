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

// Store keeps blobs. All methods may be called from any goroutine.
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

// PinStore is a Store that evicts what was not used for longest, except what
// is pinned.
type PinStore interface {
	Store
	Pinner
	// Sync returns when the blobs are safe from a power cut. It fails with
	// ErrNotFound if one of them is not held, or is not what it was.
	Sync(hashes ...Hash) error
	// StartEviction makes the store keep to its limit from now on: what is
	// needed of an earlier life has been pinned.
	StartEviction()
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

// PinTo returns a Putter that pins every blob for owner before it goes into
// the store, so that nothing of a tree is evicted while the rest is read.
func PinTo(s PinStore, owner string) Putter { return pinned{s, owner} }

type pinned struct {
	store PinStore
	owner string
}

func (p pinned) Put(h Hash, data []byte) error {
	p.store.Pin(p.owner, h)
	return p.store.Put(h, data)
}

func (p pinned) putHashed(h Hash, data []byte) error {
	p.store.Pin(p.owner, h)
	return PutVerified(p.store, h, data)
}

// refer implements referrer.
func (p pinned) refer(f File) error {
	to, ok := p.store.(interface{ Lend(f File) error })
	if !ok {
		return ErrElsewhere
	}
	p.store.Pin(p.owner, f.Chunks...)
	return to.Lend(f)
}

// Lost tells why a store does not have a blob any more that it read from a file of
// others; nil if it does not know.
func Lost(s Store, h Hash) error {
	if told, ok := s.(interface{ Lost(h Hash) error }); ok {
		return told.Lost(h)
	}
	return nil
}

// OnLost has f called as DirStore.OnLost says, if the store is one.
func OnLost(s Store, f func(owners []string)) {
	if tells, ok := s.(interface{ OnLost(f func(owners []string)) }); ok {
		tells.OnLost(f)
	}
}

// Keep makes sure that a store has a blob for good that it can read for a while, and
// reports whether it has it.
func Keep(s Store, h Hash) bool { return keep(s, h, false) }

// Own is Keep for what is to be there whatever becomes of files of others, as of the inputs of
// whoever submitted a job.
func Own(s Store, h Hash) bool { return keep(s, h, true) }

func keep(s Store, h Hash, forGood bool) bool {
	if lent, ok := s.(interface {
		keep(h Hash, forGood bool) bool
	}); ok {
		return lent.keep(h, forGood)
	}
	return forGood && s.Has(h)
}

// holder is a store that reads blobs from files of others, too.
type holder interface {
	holds(h Hash) (held, own bool) // at all, and in a file of the store
}

// Serves reports whether Get returns a blob, if only for a while, as DirStore.Lend says.
func Serves(s Store, h Hash) bool {
	if lends, ok := s.(holder); ok {
		held, _ := lends.holds(h)
		return held
	}
	return s.Has(h)
}

// Owns reports whether a store has a blob itself, and does not read it from a file of
// others, as DirStore.Refer says.
func Owns(s Store, h Hash) bool {
	if lends, ok := s.(holder); ok {
		_, own := lends.holds(h)
		return own
	}
	return s.Has(h)
}

// hashedPutter is a Putter of this package that need not hash again what the
// caller has just hashed.
type hashedPutter interface {
	putHashed(h Hash, data []byte) error
}

// PutVerified is Put of what the caller has verified: it may be taken at its word.
func PutVerified(p Putter, h Hash, data []byte) error {
	if own, ok := p.(hashedPutter); ok {
		return own.putHashed(h, data)
	}
	return p.Put(h, data)
}

// verifiedGetter is a Getter of this package that has checked what it returns.
type verifiedGetter interface {
	verified()
}

// getVerified gets a blob and checks it, unless the getter did so itself.
func getVerified(g Getter, h Hash, buf []byte) ([]byte, error) {
	data, err := g.Get(h, buf)
	if err != nil {
		return nil, err
	}
	if _, own := g.(verifiedGetter); own {
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
