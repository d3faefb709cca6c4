package jobs

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"math/rand/v2"
	"testing"

	"zorilla/internal/codec"
	"zorilla/vicinity"
)

// signer signs as nodes do: the key, the signature.
type signer struct {
	id  vicinity.ID
	key ed25519.PrivateKey
}

func newSigner(seed byte) signer {
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
	return signer{vicinity.IDFromKey(key.Public().(ed25519.PublicKey)), key}
}

func (s signer) sign(domain string, msg []byte) []byte {
	public := s.key.Public().(ed25519.PublicKey)
	return append(append([]byte{}, public...), ed25519.Sign(s.key, append([]byte(domain), msg...))...)
}

func verifySigned(domain string, from vicinity.ID, msg, sig []byte) error {
	public := ed25519.PublicKey(sig[:ed25519.PublicKeySize])
	if vicinity.IDFromKey(public) != from || !ed25519.Verify(public, append([]byte(domain), msg...), sig[ed25519.PublicKeySize:]) {
		return errors.New("bad signature")
	}
	return nil
}

func TestForgedPacketsAreCountedAndDropped(t *testing.T) {
	self, friend, other := newSigner(1), newSigner(2), newSigner(3)
	s := New(Config{Self: vicinity.Member{ID: self.id, Slots: 1}, Verify: verifySigned, Rand: rand.New(rand.NewPCG(1, 2))})
	signed := func(by signer, domain string, p packet) []byte {
		msg := codec.MustMarshal(p)
		return append(by.sign(domain, msg), msg...)
	}
	job := ID("k7f3q").At(self.id)
	offer := packet{To: self.id, Answer: &Answer{Job: job, Round: 1, Key: 7, Workers: 1, Capacity: 1}}
	good := signed(friend, PacketDomain, offer)
	s.Receive(friend.id, good)
	if c := s.Counts(); c != (Counts{}) || len(s.inbox) != 1 {
		t.Fatalf("a genuine answer: %+v, %d in the inbox", c, len(s.inbox))
	}
	altered := bytes.Clone(good)
	altered[len(altered)-1] ^= 1
	elsewhere := offer
	elsewhere.To = other.id
	forged := map[string]func(){
		"another's signature":    func() { s.Receive(friend.id, signed(other, PacketDomain, offer)) },
		"another's identity":     func() { s.Receive(other.id, good) },
		"signed as something":    func() { s.Receive(friend.id, signed(friend, SignatureDomain, offer)) },
		"meant for another node": func() { s.Receive(friend.id, signed(friend, PacketDomain, elsewhere)) },
		"another's yield":        func() { s.Receive(friend.id, signed(other, PacketDomain, packet{To: self.id, Yield: job})) },
	}
	n := int64(0)
	for what, receive := range forged {
		receive()
		n++
		if c := s.Counts(); c != (Counts{Forged: n}) || len(s.inbox) != 1 {
			t.Errorf("%s: counted %+v, want %d forged; %d in the inbox", what, c, n, len(s.inbox))
		}
	}
	for _, b := range [][]byte{nil, good[:50], good[:len(good)-3], signed(friend, PacketDomain, packet{To: self.id})} {
		s.Receive(friend.id, b)
	}
	s.Receive(friend.id, altered)
	if c := s.Counts(); c.Malformed+c.Forged != n+5 || c.Malformed < 4 || len(s.inbox) != 1 {
		t.Errorf("counted %+v", c)
	}
}

// A yield for a job of one origin does not end the hold of another's.
func TestYieldOfAStrangerIsIgnored(t *testing.T) {
	self, origin, other := newSigner(1), newSigner(2), newSigner(3)
	s := New(Config{Self: vicinity.Member{ID: self.id, Slots: 1}, Verify: verifySigned, Rand: rand.New(rand.NewPCG(1, 2))})
	s.core.claims.member = func(vicinity.ID) (vicinity.Member, bool) { return vicinity.Member{}, false }
	ad := testAd(origin.id, "aaaaa", 1, 1)
	if a := s.core.claims.advertised(start, ad); a.Workers != 1 {
		t.Fatalf("got %+v", a)
	}
	s.core.yielded(start, other.id, ad.Job, true)
	if len(s.core.claims.holds) != 1 {
		t.Fatal("a stranger ended a hold")
	}
	s.core.yielded(start, origin.id, ad.Job, true)
	if len(s.core.claims.holds) != 0 {
		t.Fatal("the origin could not end its hold")
	}
}
