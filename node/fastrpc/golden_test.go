package fastrpc

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"testing"

	"zorilla/internal/codec"
	"zorilla/internal/golden"
	"zorilla/node/trust"
)

// TestGoldenMessages reads the packets that earlier versions sent to a node whose key is known, and
// the answer that it gave.
func TestGoldenMessages(t *testing.T) {
	kem, _, _ := suite()
	seed := sha256.Sum256([]byte("the key of a test"))
	key, err := kem.DeriveKeyPair(seed[:])
	if err != nil {
		t.Fatal(err)
	}
	near, far := identity(t, 1), identity(t, 2)
	n := number{1, 2, 3}
	msg, open, err := seal(near.ID(), far.ID(), key.PublicKey().Bytes(), n, request{Path: "/v1/peer/grant", Body: []byte("body"), Key: bytes.Repeat([]byte{9}, keyLen)})
	if err != nil {
		t.Fatal(err)
	}
	packet := append(append([]byte{kindRequest}, near.Sign(domain, msg)...), msg...)
	decode := func(b []byte) (any, error) {
		if len(b) < 1+trust.SignatureSize || b[0] != kindRequest {
			return nil, codec.ErrMalformed
		}
		if err := trust.Verify(domain, near.ID(), b[1+trust.SignatureSize:], b[1:1+trust.SignatureSize]); err != nil {
			return nil, err
		}
		var e envelope
		if err := codec.Unmarshal(b[1+trust.SignatureSize:], &e); err != nil {
			return nil, err
		}
		if !bytes.Equal(e.Which, which(key.PublicKey().Bytes())) {
			return nil, fmt.Errorf("sealed with key %x", e.Which)
		}
		r, _, err := unseal(key, near.ID(), &e)
		return map[string]any{"to": e.To, "number": e.Number, "path": r.Path, "body": r.Body, "key": r.Key}, err
	}
	// Both of a packet, since the key of the answer follows from the request.
	both := append(append(packet, '|', '|', '|'), closeAnswer(open, n, answer{Status: 409, Body: []byte("refused: no such hold")})...)
	golden.Messages(t, "messages", map[string]golden.Message{
		"request": {Bytes: packet, Decode: decode, Varies: true},
		"answer": {Bytes: both, Varies: true, Decode: func(b []byte) (any, error) {
			asked, answered, ok := bytes.Cut(b, []byte("|||"))
			if _, err := decode(asked); err != nil || !ok || answered[0] != kindAnswer {
				return nil, fmt.Errorf("no answer after the request: %v", err)
			}
			var e envelope
			if err := codec.Unmarshal(asked[1+trust.SignatureSize:], &e); err != nil {
				return nil, err
			}
			_, open, err := unseal(key, near.ID(), &e)
			if err != nil {
				return nil, err
			}
			return openAnswer(open, number(answered[1:1+len(n)]), answered[1+len(n):])
		}},
	})
}
