package agent

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/primary"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/internal/wire/wiretest"
	"zorilla/transfer"
	"zorilla/vicinity"
)

func TestForgedPacketsAreCountedAndDropped(t *testing.T) {
	self, friend, other := jobtest.NewSigner(1), jobtest.NewSigner(2), jobtest.NewSigner(3)
	s := New(Config{Self: vicinity.Member{ID: self.ID, Slots: 1}, Store: transfer.NewMemStore(0), Verify: jobtest.Verify, Rand: rand.New(rand.NewPCG(1, 2))})
	signed := func(by jobtest.Signer, domain string, p wire.Packet) []byte {
		msg := codec.MustMarshal(p)
		return append(by.Sign(domain, msg), msg...)
	}
	job := jobs.ID("k7f3q").At(self.ID)
	offer := wire.Packet{To: self.ID, Answer: &wire.Answer{Job: job, Round: 1, Key: 7, Workers: 1, Capacity: 1}}
	good := signed(friend, wire.PacketDomain, offer)
	s.Receive(friend.ID, good)
	if c := s.Counts(); c != (jobs.Counts{}) || s.loop.Waiting() != 1 {
		t.Fatalf("a genuine answer: %+v, %d in the inbox", c, s.loop.Waiting())
	}
	altered := bytes.Clone(good)
	altered[len(altered)-1] ^= 1
	elsewhere := offer
	elsewhere.To = other.ID
	forged := map[string]func(){
		"another's signature":    func() { s.Receive(friend.ID, signed(other, wire.PacketDomain, offer)) },
		"another's identity":     func() { s.Receive(other.ID, good) },
		"signed as something":    func() { s.Receive(friend.ID, signed(friend, wire.SignatureDomain, offer)) },
		"meant for another node": func() { s.Receive(friend.ID, signed(friend, wire.PacketDomain, elsewhere)) },
		"another's yield":        func() { s.Receive(friend.ID, signed(other, wire.PacketDomain, wire.Packet{To: self.ID, Yield: job})) },
	}
	n := int64(0)
	for what, receive := range forged {
		receive()
		n++
		if c := s.Counts(); c != (jobs.Counts{Forged: n}) || s.loop.Waiting() != 1 {
			t.Errorf("%s: counted %+v, want %d forged; %d in the inbox", what, c, n, s.loop.Waiting())
		}
	}
	for _, b := range [][]byte{nil, good[:50], good[:len(good)-3], signed(friend, wire.PacketDomain, wire.Packet{To: self.ID})} {
		s.Receive(friend.ID, b)
	}
	s.Receive(friend.ID, altered)
	if c := s.Counts(); c.Malformed+c.Forged != n+5 || c.Malformed < 4 || s.loop.Waiting() != 1 {
		t.Errorf("counted %+v", c)
	}
}

// A yield for a job of one origin does not end the hold of another's.
func TestYieldOfAStrangerIsIgnored(t *testing.T) {
	self, origin, other := jobtest.NewSigner(1), jobtest.NewSigner(2), jobtest.NewSigner(3)
	s := New(Config{Self: vicinity.Member{ID: self.ID, Slots: 1}, Store: transfer.NewMemStore(0), Verify: jobtest.Verify, Rand: rand.New(rand.NewPCG(1, 2))})
	s.core.Claims.Member = func(vicinity.ID) (vicinity.Member, bool) { return vicinity.Member{}, false }
	ad := wiretest.Ad(origin.ID, "aaaaa", 1, 1)
	if a := s.core.Claims.Advertised(jobtest.Start, ad); a.Workers != 1 {
		t.Fatalf("got %+v", a)
	}
	s.core.Yielded(jobtest.Start, other.ID, primary.DoYield{Job: ad.Job, Forget: true})
	if len(s.core.Claims.Holds) != 1 {
		t.Fatal("a stranger ended a hold")
	}
	s.core.Yielded(jobtest.Start, origin.ID, primary.DoYield{Job: ad.Job, Forget: true})
	if len(s.core.Claims.Holds) != 0 {
		t.Fatal("the origin could not end its hold")
	}
}
