package trust

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"
)

const (
	secretSize   = 32
	secretPrefix = "zors1."
	sumSize      = 4

	// MinPhrase is the least number of characters of a phrase.
	MinPhrase = 16
	maxPhrase = 1024

	phraseSalt    = "zorilla network phrase v1"
	phraseTime    = 3
	phraseMemory  = 64 << 10 // KiB
	phraseThreads = 4        // part of the result, not of the machine
)

// ErrSecret is wrapped by errors about text that is not a secret.
var ErrSecret = errors.New("bad network secret")

// Secret is what the nodes of a network share. Printing it shows nothing of
// it; Text does. The zero value is no secret.
type Secret struct {
	key hidden[[secretSize]byte]
}

// hidden holds a value that fmt and encoders cannot look into: they print the
// contents of unexported fields, also through pointers, without asking any
// method, but not what a function would return.
type hidden[T any] func() T

func hide[T any](v T) hidden[T] { return func() T { return v } }

// NewSecret makes a secret out of 32 bytes of rand, which must be a
// cryptographic source.
func NewSecret(rand io.Reader) (Secret, error) {
	var key [secretSize]byte
	if _, err := io.ReadFull(rand, key[:]); err != nil {
		return Secret{}, fmt.Errorf("make network secret: %w", err)
	}
	return Secret{hide(key)}, nil
}

// SecretFromPhrase stretches a phrase with Argon2id, which takes about a
// tenth of a second and 64 MiB. White space around the phrase does not count.
// Errors wrap ErrSecret.
func SecretFromPhrase(phrase string) (Secret, error) {
	phrase = strings.TrimSpace(phrase)
	switch n := utf8.RuneCountInString(phrase); {
	case !utf8.ValidString(phrase):
		return Secret{}, fmt.Errorf("%w: the phrase is not UTF-8 text", ErrSecret)
	case strings.ContainsAny(phrase, "\r\n\x00"):
		return Secret{}, fmt.Errorf("%w: the phrase has more than one line", ErrSecret)
	case n < MinPhrase:
		return Secret{}, fmt.Errorf("%w: the phrase has %d characters, want at least %d", ErrSecret, n, MinPhrase)
	case n > maxPhrase:
		return Secret{}, fmt.Errorf("%w: the phrase has %d characters, want at most %d", ErrSecret, n, maxPhrase)
	}
	key := argon2.IDKey([]byte(phrase), []byte(phraseSalt), phraseTime, phraseMemory, phraseThreads, secretSize)
	debug.FreeOSMemory() // it took phraseMemory, which the process would have for minutes
	return Secret{hide([secretSize]byte(key))}, nil
}

// ParseSecret reads the line of a secret file: what Text writes, an invite
// token, or a phrase. Errors wrap ErrSecret or ErrInvite and show nothing of
// the text.
func ParseSecret(text string) (Secret, error) {
	text = strings.TrimSpace(text)
	if strings.HasPrefix(text, invitePrefix) {
		inv, err := ParseInvite(text)
		return inv.Secret, err
	}
	digits, ok := strings.CutPrefix(text, secretPrefix)
	if !ok {
		return SecretFromPhrase(text)
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(digits)
	if err != nil || len(b) != secretSize+sumSize {
		return Secret{}, fmt.Errorf("%w: %s wants %d more characters, this has %d: copy all of it", ErrSecret,
			secretPrefix, base64.RawURLEncoding.EncodedLen(secretSize+sumSize), len(digits))
	}
	key, ok := checkSum(b)
	if !ok {
		return Secret{}, fmt.Errorf("%w: its checksum does not match: copy it again", ErrSecret)
	}
	return Secret{hide([secretSize]byte(key))}, nil
}

// Text returns the secret itself, for a file that only the owner can read.
// The zero Secret has the text "".
func (s Secret) Text() string {
	if s.IsZero() {
		return ""
	}
	return secretPrefix + base64.RawURLEncoding.EncodeToString(addSum(s.bytes()))
}

// IsZero reports whether s is no secret.
func (s Secret) IsZero() bool { return s.key == nil }

// Equal reports whether s and o are the same secret.
func (s Secret) Equal(o Secret) bool {
	if s.IsZero() || o.IsZero() {
		return s.IsZero() && o.IsZero()
	}
	return subtle.ConstantTimeCompare(s.bytes(), o.bytes()) == 1
}

func (s Secret) bytes() []byte {
	key := s.key()
	return key[:]
}

// String returns a fixed text.
func (s Secret) String() string { return "(secret)" }

// Format keeps the secret out of every verb.
func (s Secret) Format(f fmt.State, _ rune) { io.WriteString(f, s.String()) }

// addSum returns a copy of b followed by its checksum.
func addSum(b []byte) []byte {
	sum := sha256.Sum256(b)
	return append(append(make([]byte, 0, len(b)+sumSize), b...), sum[:sumSize]...)
}

// checkSum returns a copy of b without its checksum, if that is right.
func checkSum(b []byte) ([]byte, bool) {
	if len(b) < sumSize {
		return nil, false
	}
	body := append([]byte(nil), b[:len(b)-sumSize]...)
	return body, string(addSum(body)) == string(b)
}
