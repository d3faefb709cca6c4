package fastrpc

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/hpke"
	"fmt"

	"zorilla/internal/codec"
	"zorilla/vicinity"
)

const (
	// MaxBody is of a request that may travel as a packet, in bytes.
	MaxBody = 1000
	// MaxAnswer is of an answer that may, in bytes.
	MaxAnswer = 1200

	domain      = "zorilla early request 1"
	forAnswer   = "answer"
	kindRequest = 1
	kindAnswer  = 2
	keyLen      = 32
)

// number names a request, among those of all times.
type number [16]byte

// envelope is what a packet tells of a request to whoever can read packets.
type envelope struct {
	To     vicinity.ID `json:"t"`
	Number []byte      `json:"i"`
	Which  []byte      `json:"w"` // of the receiver's keys
	Key    []byte      `json:"e"` // encapsulated
	Sealed []byte      `json:"c"`
}

// request is what only its receiver can read.
type request struct {
	Path string `json:"p"`
	Body []byte `json:"b,omitempty"`
	Key  []byte `json:"k"` // of the sender
}

// answer is that of a request.
type answer struct {
	Status int    `json:"s"`
	Body   []byte `json:"b,omitempty"`
}

func suite() (hpke.KEM, hpke.KDF, hpke.AEAD) {
	return hpke.DHKEM(ecdh.X25519()), hpke.HKDFSHA256(), hpke.AES256GCM()
}

// which is by what a receiver tells its keys apart.
func which(key []byte) []byte { return key[:4] }

// bound is what a sealed request is bound to: nobody else can send it on as its own.
func bound(from vicinity.ID, n []byte) []byte { return append([]byte(from), n...) }

// seal closes a request for the owner of a key. The answer is opened by what is returned.
func seal(from, to vicinity.ID, key []byte, n number, r request) (msg []byte, open cipher.AEAD, err error) {
	kem, kdf, aead := suite()
	pub, err := kem.NewPublicKey(key)
	if err != nil {
		return nil, nil, err
	}
	encapsulated, s, err := hpke.NewSender(pub, kdf, aead, []byte(domain))
	if err != nil {
		return nil, nil, err
	}
	sealed, err := s.Seal(bound(from, n[:]), codec.MustMarshal(r))
	if err != nil {
		return nil, nil, err
	}
	if open, err = answering(s.Export); err != nil {
		return nil, nil, err
	}
	return codec.MustMarshal(envelope{To: to, Number: n[:], Which: which(key), Key: encapsulated, Sealed: sealed}), open, nil
}

// unseal opens a request. Its answer is closed by what is returned.
func unseal(key hpke.PrivateKey, from vicinity.ID, e *envelope) (r request, closing cipher.AEAD, err error) {
	_, kdf, aead := suite()
	s, err := hpke.NewRecipient(e.Key, key, kdf, aead, []byte(domain))
	if err != nil {
		return r, nil, err
	}
	b, err := s.Open(bound(from, e.Number), e.Sealed)
	if err != nil {
		return r, nil, err
	}
	if err := codec.Unmarshal(b, &r); err != nil {
		return r, nil, err
	}
	if len(r.Body) > MaxBody || len(r.Key) != keyLen {
		return r, nil, fmt.Errorf("early request: %w", codec.ErrMalformed)
	}
	closing, err = answering(s.Export)
	return r, closing, err
}

// answering is what the answer to a request is closed and opened with.
func answering(export func(string, int) ([]byte, error)) (cipher.AEAD, error) {
	secret, err := export(forAnswer, 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(secret)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// closeAnswer makes the packet of an answer; nil if it is too long for one.
func closeAnswer(c cipher.AEAD, n number, a answer) []byte {
	if len(a.Body) > MaxAnswer {
		return nil
	}
	packet := append([]byte{kindAnswer}, n[:]...)
	return c.Seal(packet, make([]byte, c.NonceSize()), codec.MustMarshal(a), n[:])
}

// openAnswer reads what follows the number in the packet of an answer.
func openAnswer(c cipher.AEAD, n number, sealed []byte) (a answer, err error) {
	b, err := c.Open(nil, make([]byte, c.NonceSize()), sealed, n[:])
	if err != nil {
		return a, err
	}
	if err := codec.Unmarshal(b, &a); err != nil {
		return a, err
	}
	if a.Status < 100 || a.Status > 999 {
		return a, fmt.Errorf("early answer: status %d: %w", a.Status, codec.ErrMalformed)
	}
	return a, nil
}
